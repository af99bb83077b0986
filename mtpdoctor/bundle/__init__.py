"""One archive for support: what a diagnosis needs, without whose machine it was. Nothing is sent anywhere."""
