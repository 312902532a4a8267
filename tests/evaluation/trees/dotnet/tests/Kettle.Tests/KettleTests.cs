using Xunit;

namespace Rope.Tests;

public partial class KettleTests
{
    [Fact] public void Boils() => Assert.True(Kettle.Boils(100, 1));
    [Fact(DisplayName = "a kettle fails")] public void Fails() => Assert.Equal(1, 2);
    [Fact(Skip = "not now")] public void Later() { }

    public class Empty
    {
        [Theory]
        [InlineData(0, "a.b")]
        [InlineData(1, "a.b")]
        public void IsCold(int heat, string name) => Assert.Equal(0, heat);
    }
}
