//! Bounds for loom's exploration.

/// Explores every interleaving with up to three preemptions. Three preemptions reveal the faults that the tests look for.
/// Without a bound, a test of three steps takes hours.
pub fn model(test: impl Fn() + Sync + Send + 'static) {
    model_with(3, test);
}

/// Explores every interleaving with at most `preemptions` preemptions.
pub fn model_with(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}
