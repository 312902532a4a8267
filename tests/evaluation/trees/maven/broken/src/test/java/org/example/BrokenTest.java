package org.example;

import org.junit.jupiter.api.Test;

class BrokenTest {
  @Test void never() { Missing.call(); }
}
