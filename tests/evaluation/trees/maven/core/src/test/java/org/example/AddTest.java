package org.example;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;

class AddTest {
  @Test void sums() { assertEquals(2, 1 + 1); }
  @Test void sumsWrongly() { assertEquals(3, 1 + 1); }
  @Test void throwing() { throw new IllegalStateException("no"); }
  @Test @Disabled("later") void disabled() {}
  @ParameterizedTest @ValueSource(ints = {1, 2}) void each(int n) { assertEquals(1, n); }
  @ParameterizedTest @CsvSource({"'a b', 1", "c, 2"}) void pairs(String s, int n) {}
  @Nested class WhenNegative { @Test void sums() {} }
}

class OtherTest {
  @Test void inAnotherFile() {}
}
