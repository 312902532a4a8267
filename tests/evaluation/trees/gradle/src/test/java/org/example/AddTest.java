package org.example;

import static org.junit.Assert.*;

import org.junit.*;

public class AddTest {
  @Test public void sums() { assertEquals(2, 1 + 1); }
  @Test public void sumsWrongly() { assertEquals(3, 1 + 1); }
  @Test public void throwing() { throw new IllegalStateException("no"); }
  @Test @Ignore("later") public void ignored() {}
  public static class Inner { @Test public void sums() {} }
}
