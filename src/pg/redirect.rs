//! Calls of the server's functions for sequences, which are redirected to functions of ours while a statement is planned.

use super::{relation, role};
use pgrx::{pg_guard, pg_sys};
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

unsafe extern "C-unwind" {
    // The raw symbol: pg_sys's has a guard around it.
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
        #[cfg(feature = "pg19")] explain: *mut pg_sys::ExplainState,
    ) -> *mut pg_sys::PlannedStmt;
    // So are these: a guard for each level of an expression would take a multiple of the stack.
    #[cfg_attr(any(feature = "pg14", feature = "pg15"), link_name = "expression_tree_walker")]
    #[cfg_attr(not(any(feature = "pg14", feature = "pg15")), link_name = "expression_tree_walker_impl")]
    fn walk_expression(node: *mut pg_sys::Node, walker: Walker, context: *mut c_void) -> bool;
    #[cfg_attr(any(feature = "pg14", feature = "pg15"), link_name = "query_tree_walker")]
    #[cfg_attr(not(any(feature = "pg14", feature = "pg15")), link_name = "query_tree_walker_impl")]
    fn walk_query(query: *mut pg_sys::Query, walker: Walker, context: *mut c_void, flags: c_int) -> bool;
}

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// The functions that calls of the server's are redirected to.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// In the order of [`Called`].
    pub calls: [pg_sys::Oid; 5],
    /// Notes the id of a column as its sequence's number.
    pub recorded: pg_sys::Oid,
    /// The functions that defaults of columns take ids from.
    pub ids: [pg_sys::Oid; 6],
    /// The sequence that a column owns and whose calls are redirected.
    pub of_column: OfColumn,
}

type OfColumn = fn(pg_sys::Oid, i16) -> Option<pg_sys::Oid>;

/// A function of the server's whose calls are redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    Nextval,
    Currval,
    Lastval,
    Setval,
    Setval3,
}

const CALLED: [(u32, &str); 5] =
    [(1574, "nextval"), (1575, "currval"), (2559, "lastval"), (1576, "setval"), (1765, "setval")];

impl Called {
    fn of(function: pg_sys::Oid) -> Option<Self> {
        let all = [Self::Nextval, Self::Currval, Self::Lastval, Self::Setval, Self::Setval3];
        all.into_iter().find(|called| called.oid() == function)
    }

    fn oid(self) -> pg_sys::Oid {
        CALLED[self as usize].0.into()
    }

    pub fn name(self) -> &'static str {
        CALLED[self as usize].1
    }
}

/// The server's function that makes a bigint an integer.
const INT4: u32 = 480;
const INT2: u32 = 714;

/// Returns whether the current role may call the function that a call was redirected from: asked once for each place in
/// a statement, as the server does.
///
/// # Safety
/// The call is one by the server.
pub unsafe fn may_call(call: pg_sys::FunctionCallInfo, called: Called) -> bool {
    // SAFETY: as above. What the function keeps between calls is its own; no more is done with it than seen whether it is there.
    unsafe {
        let info = (*call).flinfo;
        if info.is_null() {
            return role::may_execute(called.oid());
        }
        if (*info).fn_extra.is_null() && role::may_execute(called.oid()) {
            (*info).fn_extra = info.cast();
        }
        !(*info).fn_extra.is_null()
    }
}

#[inline]
pub fn is_setval(function: pg_sys::Oid) -> bool {
    function == Called::Setval.oid() || function == Called::Setval3.oid()
}

/// Where statements are to be redirected to at the moment; None where they are not.
type Redirect = fn() -> Option<Targets>;

static REDIRECT: OnceLock<Redirect> = OnceLock::new();
static mut PREVIOUS: pg_sys::planner_hook_type = None;

/// Has each statement that is planned from now on ask where its calls go. Only while the server loads libraries.
pub fn redirect_calls(redirect: Redirect) {
    REDIRECT.get_or_init(|| redirect);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(plan);
    }
}

/// Returns whether calls can be redirected: the server has loaded the library at its start.
pub fn is_redirecting() -> bool {
    REDIRECT.get().is_some()
}

/// Has no guard around it, and no destructor in it: an error of a planner, or of a function that it calls, passes through it
/// whole, as through a function in C.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
    #[cfg(feature = "pg19")] explain: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    let mut targets = None;
    find_targets(&mut targets);
    if let Some(targets) = &targets {
        // SAFETY: a planner may change the query that it is given; the targets live as long as the walk.
        unsafe { redirect_node(query.cast(), std::ptr::from_ref(targets).cast_mut().cast()) };
    }
    // SAFETY: the planner that was set before ours, or the server's, is called once, as the server would have.
    unsafe {
        let plan = PREVIOUS.unwrap_or(standard_planner);
        #[cfg(not(feature = "pg19"))]
        let planned = plan(query, text, options, parameters);
        #[cfg(feature = "pg19")]
        let planned = plan(query, text, options, parameters, explain);
        planned
    }
}

#[pg_guard]
extern "C-unwind" fn find_targets(found: &mut Option<Targets>) {
    *found = REDIRECT.get().and_then(|redirect| redirect());
}

/// [`record_defaults`] with a guard around it: it calls the server.
#[pg_guard]
unsafe extern "C-unwind" fn record_defaults_of(query: *mut pg_sys::Query, targets: *const Targets) {
    // SAFETY: the caller's.
    unsafe { record_defaults(&*query, &*targets) }
}

/// [`call_for`] with a guard around it: null where there is none.
#[pg_guard]
unsafe extern "C-unwind" fn call_for_node(
    node: *mut pg_sys::Node,
    targets: *const Targets,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's.
    unsafe { call_for(node, &*targets).unwrap_or(std::ptr::null_mut()) }
}

/// Has the ids that the defaults of columns give in an INSERT, or by SET column = DEFAULT, noted as numbers of the columns' sequences:
/// applications ask for `currval` of a sequence afterwards.
///
/// # Safety
/// `query` is one that may be changed.
unsafe fn record_defaults(query: &pg_sys::Query, targets: &Targets) {
    // SAFETY: as above: its lists are of what the server puts there.
    unsafe {
        let Some(place) = usize::try_from(query.resultRelation).ok().and_then(|place| place.checked_sub(1))
        else {
            return;
        };
        let tables = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg(query.rtable);
        let Some(table) = tables.get_ptr(place).map(|table| (*table).relid) else { return };
        match query.commandType {
            pg_sys::CmdType::CMD_INSERT => {
                record_columns(query.targetList, &tables, table, targets);
                if let Some(conflict) = query.onConflict.as_ref() {
                    record_columns(conflict.onConflictSet, &tables, table, targets);
                }
            }
            pg_sys::CmdType::CMD_UPDATE => record_columns(query.targetList, &tables, table, targets),
            #[cfg(not(feature = "pg14"))]
            pg_sys::CmdType::CMD_MERGE => {
                let actions = pgrx::PgList::<pg_sys::MergeAction>::from_pg(query.mergeActionList);
                for action in actions.iter_ptr() {
                    record_columns((*action).targetList, &tables, table, targets);
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// The list is of the columns that a row is made of; `tables` are those of the query that it is in.
unsafe fn record_columns(
    columns: *mut pg_sys::List,
    tables: &pgrx::PgList<pg_sys::RangeTblEntry>,
    table: pg_sys::Oid,
    targets: &Targets,
) {
    // SAFETY: as above: an expression is the struct that its tag says.
    unsafe {
        for column in pgrx::PgList::<pg_sys::TargetEntry>::from_pg(columns).iter_ptr() {
            let slot: *mut *mut c_void = (&raw mut (*column).expr).cast();
            // Of a column of another type, the values of several rows are converted together.
            let value = unconverted(slot);
            if !is_node(*value, pg_sys::NodeTag::T_Var) {
                record_value(slot, table, (*column).resno, targets);
                continue;
            }
            // Of several rows: VALUES (DEFAULT, ...), (DEFAULT, ...).
            let var: *mut pg_sys::Var = (*value).cast();
            let row_place = usize::try_from((*var).varno).ok().and_then(|place| place.checked_sub(1));
            let rows = row_place.and_then(|place| tables.get_ptr(place));
            let cell = usize::try_from((*var).varattno).ok().and_then(|place| place.checked_sub(1));
            let (Some(rows), Some(cell)) = (rows, cell) else { continue };
            if (*rows).rtekind != pg_sys::RTEKind::RTE_VALUES {
                continue;
            }
            for row in pgrx::PgList::<pg_sys::List>::from_pg((*rows).values_lists).iter_ptr() {
                if usize::try_from((*row).length).is_ok_and(|length| cell < length) {
                    record_value(
                        &raw mut (*(*row).elements.add(cell)).ptr_value,
                        table,
                        (*column).resno,
                        targets,
                    );
                }
            }
        }
    }
}

/// # Safety
/// The slot holds the value of this column: a node or null. What is made belongs to the memory that statements are planned in.
unsafe fn record_value(slot: *mut *mut c_void, table: pg_sys::Oid, column: i16, targets: &Targets) {
    // SAFETY: as above.
    unsafe {
        let slot = unconverted(slot);
        if gives_id(*slot, targets)
            && let Some(sequence) = sequence_of(table, column, targets.of_column)
        {
            *slot = make_call(targets.recorded, sequence, Some((*slot).cast())).cast();
        }
    }
}

/// The sequence of a column; where it has none, that of the column of the same name in a table that it inherits from: attached with
/// that one, it takes the same ids.
fn sequence_of(table: pg_sys::Oid, column: i16, of_column: OfColumn) -> Option<pg_sys::Oid> {
    // Each once: there may be many ways to a table above.
    let mut columns = vec![(table, column)];
    let mut next = 0;
    while let Some(&(table, column)) = columns.get(next) {
        if let Some(sequence) = of_column(table, column) {
            return Some(sequence);
        }
        for above in relation::columns_above(table, column) {
            if !columns.contains(&above) {
                columns.push(above);
            }
        }
        next += 1;
    }
    None
}

/// # Safety
/// The node is one or null.
unsafe fn is_node(node: *mut c_void, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: as above.
    unsafe { !node.is_null() && (*node.cast::<pg_sys::Node>()).type_ == tag }
}

/// Where a value hangs before it is made an integer, a smallint, a `snowflake_id` or one of a domain.
///
/// # Safety
/// The slot holds a node or null.
unsafe fn unconverted(mut slot: *mut *mut c_void) -> *mut *mut c_void {
    // SAFETY: as above; a node's tag tells which struct it is.
    unsafe {
        loop {
            if is_node(*slot, pg_sys::NodeTag::T_CoerceToDomain) {
                slot = (&raw mut (*(*slot).cast::<pg_sys::CoerceToDomain>()).arg).cast();
                continue;
            }
            if is_node(*slot, pg_sys::NodeTag::T_RelabelType) {
                slot = (&raw mut (*(*slot).cast::<pg_sys::RelabelType>()).arg).cast();
                continue;
            }
            if !is_node(*slot, pg_sys::NodeTag::T_FuncExpr) {
                return slot;
            }
            let call: *mut pg_sys::FuncExpr = (*slot).cast();
            let narrows = matches!((*call).funcid.to_u32(), INT4 | INT2);
            if !narrows || (*call).args.is_null() {
                return slot;
            }
            slot = &raw mut (*(*(*call).args).elements).ptr_value;
        }
    }
}

/// Returns whether a node is a call of a function that defaults take ids from.
///
/// # Safety
/// The node is null or one.
unsafe fn gives_id(node: *mut c_void, targets: &Targets) -> bool {
    // SAFETY: as above; its tag tells which struct it is.
    unsafe {
        is_node(node, pg_sys::NodeTag::T_FuncExpr)
            && targets.ids.contains(&(*node.cast::<pg_sys::FuncExpr>()).funcid)
    }
}

/// A call of a function with a sequence, and with one more argument where there is one, that gives a bigint.
///
/// # Safety
/// The argument is a node; what is made belongs to the memory that the caller works in.
unsafe fn make_call(
    function: pg_sys::Oid,
    sequence: pg_sys::Oid,
    argument: Option<*mut pg_sys::Node>,
) -> *mut pg_sys::FuncExpr {
    let (no_oid, size) = (pg_sys::InvalidOid, 4);
    let format = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: as above.
    unsafe {
        let sequence = pg_sys::Datum::from(sequence);
        let sequence = pg_sys::makeConst(pg_sys::REGCLASSOID, -1, no_oid, size, sequence, false, true);
        let mut arguments = pgrx::PgList::<pg_sys::Node>::new();
        arguments.push(sequence.cast());
        if let Some(argument) = argument {
            arguments.push(argument);
        }
        pg_sys::makeFuncExpr(function, pg_sys::INT8OID, arguments.into_pg(), no_oid, no_oid, format)
    }
}

/// Changes calls in place; a `NextValueExpr`, which has no room for one, where it hangs: it is all of a column's value.
///
/// Has no guard around it, and no destructor in it: errors of what it calls pass through it, and through the walkers.
unsafe extern "C-unwind" fn redirect_node(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag;
    if node.is_null() {
        return false;
    }
    // SAFETY: the context is the targets that `plan` passed; nodes are what their tags say, and the query's own.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Query => {
                record_defaults_of(node.cast(), context.cast());
                return walk_query(node.cast(), redirect_node, context, 0);
            }
            NodeTag::T_FuncExpr => {
                let call: *mut pg_sys::FuncExpr = node.cast();
                if let Some(called) = Called::of((*call).funcid) {
                    (*call).funcid = (*context.cast::<Targets>()).calls[called as usize];
                }
            }
            NodeTag::T_TargetEntry => {
                let entry: *mut pg_sys::TargetEntry = node.cast();
                replace_next_value((&raw mut (*entry).expr).cast(), context.cast());
            }
            NodeTag::T_List => {
                let list: *mut pg_sys::List = node.cast();
                for index in 0..usize::try_from((*list).length).unwrap_or(0) {
                    replace_next_value(&raw mut (*(*list).elements.add(index)).ptr_value, context.cast());
                }
            }
            _ => {}
        }
        walk_expression(node, redirect_node, context)
    }
}

/// Puts a call in the place of a `NextValueExpr`.
///
/// # Safety
/// The slot holds a node or null.
unsafe fn replace_next_value(slot: *mut *mut c_void, targets: *const Targets) {
    // SAFETY: as above.
    unsafe {
        let node: *mut pg_sys::Node = (*slot).cast();
        if !node.is_null() && (*node).type_ == pg_sys::NodeTag::T_NextValueExpr {
            let call = call_for_node(node, targets);
            if !call.is_null() {
                *slot = call.cast();
            }
        }
    }
}

/// What no parser writes into a call: that it stands for an identity column's next value.
const IDENTITY: c_int = -1_574;

/// The call of our function for a `NextValueExpr`, made as narrow as its column; None where the column is of another type.
///
/// # Safety
/// The node is one.
unsafe fn call_for(node: *mut pg_sys::Node, targets: &Targets) -> Option<*mut pg_sys::Node> {
    // SAFETY: as above. What is made belongs to the memory that statements are planned in.
    unsafe {
        let next: *mut pg_sys::NextValueExpr = node.cast();
        let next_of = make_call(targets.calls[Called::Nextval as usize], (*next).seqid, None);
        (*next_of).location = IDENTITY;
        let narrow = match (*next).typeId {
            pg_sys::INT8OID => return Some(next_of.cast()),
            // No such sequence is bound, but what it gives is what lastval is then.
            pg_sys::INT4OID => INT4,
            pg_sys::INT2OID => INT2,
            _ => return None,
        };
        let mut arguments = pgrx::PgList::<pg_sys::FuncExpr>::new();
        arguments.push(next_of);
        let (no_oid, format) = (pg_sys::InvalidOid, pg_sys::CoercionForm::COERCE_IMPLICIT_CAST);
        let narrowed =
            pg_sys::makeFuncExpr(narrow.into(), (*next).typeId, arguments.into_pg(), no_oid, no_oid, format);
        Some(narrowed.cast())
    }
}

/// Returns whether a call stands for an identity column's next value, for which the server checks no rights on the
/// sequence. No user can write such a call.
///
/// # Safety
/// Called with what the server passes to a function.
pub unsafe fn is_of_identity(call: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: as above; what a function was called by is null, or an expression that its tag tells.
    unsafe {
        let Some(function) = (*call).flinfo.as_ref() else { return false };
        let expression: *mut c_void = function.fn_expr.cast();
        !expression.is_null()
            && (*expression.cast::<pg_sys::Node>()).type_ == pg_sys::NodeTag::T_FuncExpr
            && (*expression.cast::<pg_sys::FuncExpr>()).location == IDENTITY
    }
}
