//! The functions that replace the server's `nextval`, `currval`, `lastval` and `setval`.

use crate::bound::{self, error::SequenceError};
use crate::pg::error::ServerError;
use crate::pg::redirect::{Called, is_of_identity, may_call};
use crate::pg::report::{raise, report};
use pgrx::{FromDatum, pg_guard, pg_sys};

/// Defines the replacement for the server's function `$called`. The replacement fails unless the current role may call the
/// server's function.
macro_rules! replacement {
    ($entry:ident, $info:ident, $called:expr, |$call:ident| $given:expr) => {
        info!($info);

        #[unsafe(no_mangle)]
        #[pg_guard]
        extern "C-unwind" fn $entry(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            let $call = FunctionCall(call);
            $call.check($called);
            $given.unwrap_or_else(|error| raise(report(error))).into()
        }
    };
}

replacement!(sequence_nextval_wrapper, pg_finfo_sequence_nextval_wrapper, Called::Nextval, |call| {
    bound::nextval(call.argument(0), call.is_of_identity())
});
replacement!(sequence_currval_wrapper, pg_finfo_sequence_currval_wrapper, Called::Currval, |call| {
    bound::currval(call.argument(0))
});
replacement!(sequence_lastval_wrapper, pg_finfo_sequence_lastval_wrapper, Called::Lastval, |call| {
    bound::lastval()
});
replacement!(sequence_setval_wrapper, pg_finfo_sequence_setval_wrapper, Called::Setval, |call| {
    bound::setval(call.argument(0), call.argument(1), true)
});
replacement!(sequence_setval3_wrapper, pg_finfo_sequence_setval3_wrapper, Called::Setval3, |call| {
    bound::setval(call.argument(0), call.argument(1), call.argument(2))
});

info!(pg_finfo_sequence_recorded_wrapper);

#[unsafe(no_mangle)]
#[pg_guard]
extern "C-unwind" fn sequence_recorded_wrapper(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    let call = FunctionCall(call);
    bound::recorded_of_column(call.argument(0), call.argument(1)).into()
}

/// The server's call of one of these functions, with the arguments that `src/sql/bound.sql` declares.
struct FunctionCall(pg_sys::FunctionCallInfo);

impl FunctionCall {
    fn is_of_identity(&self) -> bool {
        // SAFETY: the server made this call.
        unsafe { is_of_identity(self.0) }
    }

    /// Fails unless the current role may call the server's function. The default of an identity column needs no right.
    fn check(&self, called: Called) {
        // SAFETY: the server made this call.
        let allowed =
            called == Called::Nextval && self.is_of_identity() || unsafe { may_call(self.0, called) };
        if !allowed {
            raise(report(SequenceError::NotExecutable(called.name())));
        }
    }

    /// Returns the argument at `index`, which is declared with the type `T`.
    fn argument<T: FromDatum>(&self, index: usize) -> T {
        // SAFETY: the function has this argument, which is not null because the function is strict.
        let argument = unsafe {
            let argument = (*self.0).args.as_ptr().add(index).read();
            T::from_datum(argument.value, false)
        };
        argument.unwrap_or_else(|| raise(ServerError::NullArgument))
    }
}
