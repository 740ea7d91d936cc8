"""Endpoints and deliveries in the REST API. The API finds it by ``api_routes`` of the app; nothing else imports it."""
