"""URLs and addresses that are never called."""

from __future__ import annotations

import pytest

from timeline.webhooks.connect import NotCalled, check_address, check_url

HOSTILE = [
    "",
    "receiver.example.com/hook",
    "//receiver.example.com/hook",
    "http://receiver.example.com/",
    "ftp://receiver.example.com/",
    "file:///etc/passwd",
    "gopher://receiver.example.com:70/_x",
    "javascript:alert(1)",
    "https://",
    "https:///path",
    "https://user@receiver.example.com/",
    "https://user:word@receiver.example.com/",
    "https://receiver.example.com@169.254.169.254/",
    "https://receiver.example.com\\@10.0.0.1/",
    "https://receiver.example.com#@10.0.0.1/",
    "https://receiver.example.com/#part",
    "https://receiver.example.com:22/",
    "https://receiver.example.com:6379/",
    "https://receiver.example.com:0/",
    "https://receiver.example.com:99999/",
    "https://receiver.example.com:/",
    "https://receiver.example.com:443x/",
    "https://receiver.example.com/a b",
    "https://receiver.example.com/\r\nHost: 10.0.0.1",
    "https://receiver.example.com\t.evil.example/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://10.1.2.3/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://168.63.129.16/",
    "https://192.0.0.192/",
    "https://192.88.99.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://256.1.1.1/",
    "https://1.2.3/",
    "https://[v1.fe]/",
    "https://[v1.fe80::1]/",
    "https://[receiver.example.com]/",
    "https://receiver[2606:4700::1111]/",
    "https://[2606:4700::1111]receiver.example.com/",
    "https://[[2606:4700::1111]]/",
    *(f"https://receiver.{name}/" for name in ("lan", "corp", "home", "intranet", "default.svc", "private", "test")),
    "https://receiver.LAN/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001::1]/",
    "https://[2001:db8::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[::1/",
    "https://localhost/",
    "https://intranet/",
    "https://metadata.google.internal/",
    "https://printer.local/",
    "https://app.localhost/",
    "https://LOCALHOST/",
    "https://receiver。example。com/",
    "https://①②⑦.⓪.⓪.①/",
    "https://rеceiver.example.com/",
    "https://-a.example.com/",
    "https://a..example.com/",
    "https://receiver.example.com%00.evil.example/",
    "https://receiver.example.com%2f@evil.example/",
    "https://x." + "a" * 64 + ".com/",
    "https://receiver.example.com/" + "a" * 500,
]
FINE = {
    "https://receiver.example.com": ("receiver.example.com", 443, "/"),
    "https://receiver.example.com/hook?a=b": ("receiver.example.com", 443, "/hook?a=b"),
    "https://Receiver.Example.com:8443/": ("receiver.example.com", 8443, "/"),
    "https://xn--bcher-kva.example/": ("xn--bcher-kva.example", 443, "/"),
    "https://93.184.216.34/": ("93.184.216.34", 443, "/"),
    "https://[2606:2800:220:1:248:1893:25c8:1946]/": ("2606:2800:220:1:248:1893:25c8:1946", 443, "/"),
}
LOOPBACK = ["http://127.0.0.1:8000/", "http://localhost:8000/", "http://[::1]:8000/"]


@pytest.fixture
def public(settings):
    settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": False}


class TestCheckUrl:
    @pytest.mark.parametrize("url", [*HOSTILE, *LOOPBACK])
    def test_refuses_what_is_no_receiver_elsewhere(self, url, public):
        with pytest.raises(NotCalled):
            check_url(url)

    @pytest.mark.parametrize("url", FINE)
    def test_takes_apart_what_is_one(self, url, public):
        assert check_url(url)[1:] == FINE[url]

    @pytest.mark.parametrize("url", LOOPBACK)
    def test_lets_this_machine_pass_where_the_settings_say_so(self, url):
        assert check_url(url).port == 8000

    @pytest.mark.parametrize(
        "url", ["http://10.0.0.1/", "http://169.254.169.254/", "http://127.0.0.2:8000/", "http://[::ffff:127.0.0.1]/"]
    )
    def test_lets_nothing_else_pass_with_it(self, url):
        with pytest.raises(NotCalled):
            check_url(url)


class TestCheckAddress:
    @pytest.mark.parametrize(
        "address", ["10.0.0.1", "127.0.0.1", "::1", "fe80::1%eth0", "64:ff9b:1::1", "3fff::1", "no"]
    )
    def test_refuses_what_a_name_may_lead_to(self, address, public):
        with pytest.raises(NotCalled):
            check_address(address)

    def test_takes_a_public_one(self, public):
        check_address("93.184.216.34")
