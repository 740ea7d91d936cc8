"""The sign-up form."""

from __future__ import annotations

from urllib.parse import urlsplit

from django import forms


class SignUpForm(forms.Form):
    """An e-mail address and a website: all it takes."""

    email = forms.EmailField(
        label="E-mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "email", "placeholder": "you@example.com"}),
    )
    website = forms.URLField(
        label="Your website",
        assume_scheme="https",
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "url", "placeholder": "shop.example.com", "inputmode": "url"}),
    )

    def clean_email(self) -> str:
        """Addresses that differ in case only are the same."""
        email: str = self.cleaned_data["email"]
        return email.lower()

    def clean_website(self) -> str:
        """Keep the host name."""
        return urlsplit(self.cleaned_data["website"]).hostname or ""
