"""Code shared by the languages of the Java virtual machine: JDKs, Maven, Gradle, and detection of tests."""
