"""The laboratory of psilearn: experiments, competitors, data sets, benchmarks and attacks."""
