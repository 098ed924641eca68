//! How loom explores.

/// Every interleaving with up to three preemptions, which is where such faults show; without a bound tests of three steps take hours.
pub fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}
