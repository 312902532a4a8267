class KettleSuite extends munit.FunSuite { test("boils") { assert(Kettle.boils(100)) }; test("fails") { assertEquals(Kettle.boils(1), true) } }
