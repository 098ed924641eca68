//! Bounds for loom's exploration.

/// Explores every interleaving with up to three preemptions, which reveal such faults. Without a bound, tests of three steps take
/// hours.
pub fn model(test: impl Fn() + Sync + Send + 'static) {
    model_with(3, test);
}

/// Explores every interleaving with up to this many preemptions.
pub fn model_with(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}
