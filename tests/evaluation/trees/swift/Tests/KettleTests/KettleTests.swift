import XCTest

@testable import Kettle

final class KettleTests: XCTestCase {
    func testBoils() {
        print("Test Case 'KettleTests.testPrinted' passed (0.0 seconds)")
        XCTAssertTrue(boils(100))
    }

    func testFails() { XCTAssertEqual(1, 2, "<b> & \"c\"\nsecond") }
    func testThrows() throws { throw Gone() }
    func testSkips() throws { throw XCTSkip("not here") }
    func testWaits() async throws { XCTAssertTrue(boils(100)) }
}

class OtherTests: XCTestCase {
    func testCrashes() { fatalError("broken") }
    func testOne() {}
}

struct Gone: Error {}
