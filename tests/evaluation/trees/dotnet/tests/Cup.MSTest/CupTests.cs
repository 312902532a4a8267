using Microsoft.VisualStudio.TestTools.UnitTesting;

namespace Rope.Mugs
{
    [TestClass]
    public class CupTests
    {
        [DataTestMethod]
        [DataRow(1)]
        [DataRow(2)]
        public void IsHot(int heat) => Assert.AreEqual(1, heat);

        [TestMethod, Timeout(10)]
        public void Waits() => System.Threading.Thread.Sleep(1000);
    }
}
