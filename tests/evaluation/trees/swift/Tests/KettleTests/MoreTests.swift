import XCTest

extension KettleTests {
    func testMore() {}
}
