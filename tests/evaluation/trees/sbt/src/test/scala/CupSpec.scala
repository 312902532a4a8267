import org.scalatest.flatspec.AnyFlatSpec
class CupSpec extends AnyFlatSpec { "A cup" should "boil" in { assert(Kettle.boils(100)) }; it should "fail" in { assert(Kettle.boils(1)) }; ignore should "later" in {} }
