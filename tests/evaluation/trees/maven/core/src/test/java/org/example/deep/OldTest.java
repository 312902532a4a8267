package org.example.deep;

import static org.junit.Assert.*;

import java.util.*;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

@RunWith(Parameterized.class)
public class OldTest {
  @Parameterized.Parameters public static List<Object[]> data() { return List.of(new Object[] {1}, new Object[] {2}); }
  private final int n;
  public OldTest(int n) { this.n = n; }
  @Test public void isPositive() { assertTrue(n > 0); }
}
