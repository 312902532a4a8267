"""What the languages of the Java virtual machine share: JDKs, Maven, its poms, and where tests are."""
