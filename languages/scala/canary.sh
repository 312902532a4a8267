# Prints a suite in the package of the neighbouring files, with the test framework that most of them use.
local class package kind known
class="${file##*/}" class="${class%.*}"
known='munit\.|org\.scalatest\.(funsuite|flatspec|wordspec|freespec|matchers|FunSuite|FlatSpec|WordSpec)|org\.specs2|org\.junit\.Test|utest\.|zio\.test'
package=$(grep -hsE -m 1 '^ *package ' "$folder"/*.scala | head -n 1)
kind=$(cat "$folder"/*.scala 2> /dev/null | grep -oE "$known" | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}')
[ -z "$package" ] || printf '%s\n' "$package"
case "$kind" in
    org.scalatest.[FW]*) printf 'class %s extends org.scalatest.FunSuite { test("is %s") { assert(3 * 4 == %s) } }\n' "$class" "$word" "$sum" ;;
    org.scalatest.*) printf 'class %s extends org.scalatest.funsuite.AnyFunSuite { test("is %s") { assert(3 * 4 == %s) } }\n' "$class" "$word" "$sum" ;;
    org.specs2*) printf 'class %s extends org.specs2.mutable.Specification { "canary" should { "be %s" in { 3 * 4 must_== %s } } }\n' "$class" "$word" "$sum" ;;
    org.junit*) printf 'class %s { @org.junit.Test def is%s(): Unit = assert(3 * 4 == %s) }\n' "$class" "$word" "$sum" ;;
    utest*) printf 'object %s extends utest.TestSuite { import utest._; val tests = Tests { test("is%s") { assert(3 * 4 == %s) } } }\n' "$class" "$word" "$sum" ;;
    zio*) printf 'object %s extends zio.test.ZIOSpecDefault { def spec = suite("canary")(test("is %s")(zio.test.assertTrue(3 * 4 == %s))) }\n' "$class" "$word" "$sum" ;;
    *) printf 'class %s extends munit.FunSuite { test("is %s") { assert(3 * 4 == %s) } }\n' "$class" "$word" "$sum" ;;
esac
