"""Code shared by Ruby, Perl, PHP and Elixir: selection of versions, Debian packages instead of registries."""
