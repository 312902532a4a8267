package org.example;

import org.junit.jupiter.api.Test;

class AddTest {
  @Test void ofTheWeb() {}
}
