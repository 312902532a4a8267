// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Kettle",
    targets: [
        .target(name: "Kettle"),
        .testTarget(name: "KettleTests", dependencies: ["Kettle"]),
    ]
)
