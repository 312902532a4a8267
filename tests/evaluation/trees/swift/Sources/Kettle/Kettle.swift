public func boils(_ heat: Int) -> Bool { heat > 99 }
