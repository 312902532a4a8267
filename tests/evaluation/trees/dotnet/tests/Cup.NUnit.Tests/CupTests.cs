using NUnit.Framework;

namespace Rope.Cups
{
    [TestFixture(1.5)]
    public class CupTests
    {
        public CupTests(double size) { }
        [TestCase(1, "a.b")] public void IsHot(int heat, string name) => Assert.That(heat, Is.EqualTo(1));
        [Test, Ignore("not now")] public void IsIgnored() { }
        [Test] public void IsOpen() => Assert.Inconclusive("unknown");
    }
}
