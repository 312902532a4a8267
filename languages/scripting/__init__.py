"""Code that languages with packages of Debian share: selection of versions, Debian packages instead of registries."""
