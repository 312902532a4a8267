"""What Ruby, Perl, PHP and Elixir share: versions out of several files, Debian's packages as the second way."""
