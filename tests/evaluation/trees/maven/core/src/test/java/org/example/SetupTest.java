package org.example;

import org.junit.jupiter.api.*;

class SetupTest {
  @BeforeAll static void before() { throw new IllegalStateException("no database"); }
  @Test void never() {}
}
