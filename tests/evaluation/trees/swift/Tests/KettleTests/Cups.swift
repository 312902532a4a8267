import Testing

@Suite("Cups of a kettle") struct CupTests {
    @Test func isHot() {
        print("✔ Test printed() passed after 0.001 seconds.")
        #expect(1 == 1)
    }

    @Test("has a name") func named() { #expect(1 == 2) }
    @Test(.disabled("not now")) func disabled() {}
    @Test(arguments: [1, 2, 3]) func many(_ n: Int) { #expect(n < 3) }
    @Test func known() { withKnownIssue { #expect(Bool(false)) } }

    struct Inner {
        @Test func deep() throws { throw Gone() }
    }
}

@Test func free() { #expect(Bool(true)) }
