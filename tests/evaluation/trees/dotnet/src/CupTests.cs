namespace Rope;

public class CupTests;
