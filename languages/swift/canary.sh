# Prints a class of XCTest, or a suite of Swift Testing where most of the neighbouring files import that.
local class xctest testing
class="${file##*/}" class="${class%.*}"
xctest=$(cat "$folder"/*.swift 2> /dev/null | grep -cE '^ *import XCTest')
testing=$(cat "$folder"/*.swift 2> /dev/null | grep -cE '^ *import Testing')
if [ "$testing" -gt "$xctest" ]; then
    printf 'import Testing\n\nstruct %s {\n    @Test func is%s() { #expect(3 * 4 == %s) }\n}\n' "$class" "$word" "$sum"
else
    printf 'import XCTest\n\nfinal class %s: XCTestCase {\n    func testIs%s() { XCTAssertEqual(3 * 4, %s) }\n}\n' "$class" "$word" "$sum"
fi
