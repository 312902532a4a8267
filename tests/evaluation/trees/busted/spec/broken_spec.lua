describe("broken", function(
