//! The planner hook that redirects calls of sequence functions to functions of the extension, gives former identities their
//! values and OVERRIDING, and records the ids of defaults for `currval`.
//!
//! For a bound sequence, the extension's functions return ids of this extension. For any other sequence, these functions call
//! the server's functions.

use super::per_process::PerProcess;
use super::report::{raise, report};
use super::text::TextOut;
use super::{catalog, extension, relation, relcache, role, sequence, tuple};
use pgrx::{FromDatum, pg_guard, pg_sys};
use snowflake_ids_core::column::change::{Stored, Write, stored};
use snowflake_ids_core::column::facts::IdentityKind;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;
use std::sync::OnceLock;

unsafe extern "C-unwind" {
    // This declaration bypasses pg_sys's guard.
    fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        parameters: pg_sys::ParamListInfo,
        #[cfg(feature = "pg19")] explain: *mut pg_sys::ExplainState,
    ) -> *mut pg_sys::PlannedStmt;
    // These declarations also bypass the guards: a guard at each level would multiply the stack size of the walk.
    #[cfg_attr(any(feature = "pg14", feature = "pg15"), link_name = "expression_tree_walker")]
    #[cfg_attr(not(any(feature = "pg14", feature = "pg15")), link_name = "expression_tree_walker_impl")]
    fn walk_expression(node: *mut pg_sys::Node, walker: Walker, context: *mut c_void) -> bool;
    #[cfg_attr(any(feature = "pg14", feature = "pg15"), link_name = "query_tree_walker")]
    #[cfg_attr(not(any(feature = "pg14", feature = "pg15")), link_name = "query_tree_walker_impl")]
    fn walk_query(query: *mut pg_sys::Query, walker: Walker, context: *mut c_void, flags: c_int) -> bool;
}

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// The extension's functions that are called in place of the server's.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The replacements of the server's functions, in the order of [`Called`].
    pub calls: [pg_sys::Oid; 5],
    /// The function that records the id of a column as the current value of the column's sequence.
    pub recorded: pg_sys::Oid,
    /// The functions that create ids in column defaults.
    pub ids: [pg_sys::Oid; 7],
    /// The planner support function of these functions.
    pub support: pg_sys::Oid,
    /// Returns the sequence of a column, if calls on this sequence are redirected.
    pub of_column: fn(pg_sys::Oid, i16) -> Option<pg_sys::Oid>,
    /// Returns the columns of a table that were identities, and create ids in their defaults.
    pub identities: fn(pg_sys::Oid) -> Identities,
}

/// Columns that were identities.
pub type Identities = Rc<[(i16, IdentityKind)]>;

impl Targets {
    /// Returns whether all of these functions still exist. Call only within a transaction.
    pub fn exist(&self) -> bool {
        let exists =
            |of: &pg_sys::Oid| tuple::cached(pg_sys::SysCacheIdentifier::PROCOID, *of, drop).is_some();
        self.calls.iter().chain(&self.ids).chain([&self.recorded, &self.support]).all(exists)
    }

    /// Returns whether a function is one of these functions, which are not written in SQL.
    pub fn has(&self, function: pg_sys::Oid) -> bool {
        function == self.support
            || function == self.recorded
            || self.ids.contains(&function)
            || self.calls.contains(&function)
    }
}

/// A server function that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    Nextval,
    Currval,
    Lastval,
    Setval,
    Setval3,
}

/// The OIDs and names of these functions, in the order of [`Called`].
pub(super) const CALLED: [(u32, &str); 5] =
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

/// OIDs of the server's casts from bigint to integer and to smallint.
const INT4: u32 = 480;
const INT2: u32 = 714;

/// Returns whether the current role may call the server function that the statement named originally. Like the server,
/// checks the privilege once for each call expression of a plan, and not for each row.
///
/// # Safety
/// The server has passed `call` to the function that it calls.
pub unsafe fn may_call(call: pg_sys::FunctionCallInfo, called: Called) -> bool {
    // SAFETY: the caller passes the server's argument. `fn_extra` belongs to the called function, and is only a flag.
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

/// The source of the functions to redirect calls to.
pub struct Redirect {
    /// Returns whether `targets` is cheap now. Must not fail, and must not call the server.
    pub is_known: fn() -> bool,
    /// Returns the functions; None if calls are not redirected at present.
    pub targets: fn() -> Option<Targets>,
}

static REDIRECT: OnceLock<Redirect> = OnceLock::new();
static mut PREVIOUS: pg_sys::planner_hook_type = None;

/// The number of statements that were searched for calls since it was last known whether calls are redirected.
static WALKS: PerProcess<Cell<u32>> = PerProcess::new(Cell::new(0));
/// The most such statements.
const MOST_WALKS: u32 = 32;

/// Installs the hook. Call only while the server loads libraries.
pub fn redirect_calls(redirect: Redirect) {
    REDIRECT.get_or_init(|| redirect);
    // SAFETY: hooks are chained in the postmaster, which is single-threaded.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(plan);
    }
}

/// Redirects the calls of a query, then plans the query. This function has no pgrx guard and no values to drop, so errors
/// of a planner can safely jump over it.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
    #[cfg(feature = "pg19")] explain: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    let mut targets = None;
    // A session's first statements often call no function of a user, so that they need no look-up. Many such statements cost
    // more than one look-up.
    let is_known = REDIRECT.get().is_some_and(|redirect| (redirect.is_known)());
    WALKS.set(if is_known { 0 } else { WALKS.get() + 1 });
    // SAFETY: the query is valid.
    if is_known || WALKS.get() > MOST_WALKS || unsafe { may_redirect(query.cast(), std::ptr::null_mut()) } {
        find_targets(&mut targets);
    }
    if let Some(targets) = &targets {
        // SAFETY: a planner may change its query; the targets outlive the walk.
        unsafe { redirect_node(query.cast(), std::ptr::from_ref(targets).cast_mut().cast()) };
    }
    // SAFETY: the previous hook, or the server's planner, is called once with the server's arguments.
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
    *found = REDIRECT.get().and_then(|redirect| (redirect.targets)());
    if found.is_none() {
        sequence::record_plain_plan();
    }
}

/// Returns the table that a query writes to.
///
/// # Safety
/// The query is valid.
unsafe fn written(query: &pg_sys::Query) -> Option<pg_sys::Oid> {
    // SAFETY: the range table of a valid query holds range table entries.
    unsafe {
        nth(nodes::<pg_sys::RangeTblEntry>(query.rtable), query.resultRelation).map(|table| (*table).relid)
    }
}

/// Returns whether a query writes to a table with defaults. One of its columns may be a former identity, whose values are
/// checked.
///
/// # Safety
/// The query is valid.
#[pg_guard]
unsafe extern "C-unwind" fn writes_defaults(query: &pg_sys::Query) -> bool {
    // SAFETY: the query is valid.
    unsafe { written(query) }.is_some_and(relation::has_defaults)
}

/// Returns whether a node contains a call to redirect, or a call that could become one: a call of a user's function, which
/// the planner may replace by the function's body. Also returns true if a query writes to a table with defaults.
unsafe extern "C-unwind" fn may_redirect(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag;
    let is_users = |object: pg_sys::Oid| object.to_u32() >= pg_sys::FirstNormalObjectId;
    let is_called = |function| is_users(function) || Called::of(function).is_some();
    if node.is_null() {
        return false;
    }
    // SAFETY: the tag of a node names its struct.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Query => {
                return writes_defaults(&*node.cast()) || walk_query(node.cast(), may_redirect, context, 0);
            }
            NodeTag::T_NextValueExpr => return true,
            NodeTag::T_FuncExpr => {
                let call: *mut pg_sys::FuncExpr = node.cast();
                if is_called((*call).funcid) {
                    return true;
                }
            }
            NodeTag::T_OpExpr => {
                let operation: *mut pg_sys::OpExpr = node.cast();
                if is_users((*operation).opno) {
                    return true;
                }
            }
            _ => {}
        }
        walk_expression(node, may_redirect, context)
    }
}

/// A row that a query writes.
#[derive(Clone, Copy)]
struct WrittenRow<'a> {
    /// The range table of the query.
    tables: &'a [*mut pg_sys::RangeTblEntry],
    table: pg_sys::Oid,
    identities: &'a [(i16, IdentityKind)],
    targets: &'a Targets,
}

/// Wraps each column default that creates ids, in an INSERT, a MERGE or an `UPDATE ... SET column = DEFAULT`. The wrapper
/// function records the id as the current value of the column's sequence, because applications call `currval` afterwards.
/// Treats values of columns that were identities as the server treats those of identities.
///
/// # Safety
/// The query is valid and may be changed.
#[pg_guard]
unsafe extern "C-unwind" fn record_defaults(query: &pg_sys::Query, targets: &Targets) {
    // SAFETY: the query is valid, so its lists hold nodes of the expected types.
    unsafe {
        let Some(table) = written(query) else { return };
        let tables = nodes::<pg_sys::RangeTblEntry>(query.rtable);
        let identities = &(targets.identities)(table);
        let row = WrittenRow { tables, table, identities, targets };
        match query.commandType {
            pg_sys::CmdType::CMD_INSERT => {
                record_columns(query.targetList, insert(query.override_), row);
                if let Some(conflict) = query.onConflict.as_ref() {
                    record_columns(conflict.onConflictSet, Write::Update, row);
                }
            }
            pg_sys::CmdType::CMD_UPDATE => record_columns(query.targetList, Write::Update, row),
            #[cfg(not(feature = "pg14"))]
            pg_sys::CmdType::CMD_MERGE => {
                for action in nodes::<pg_sys::MergeAction>(query.mergeActionList) {
                    let inserts = (**action).commandType == pg_sys::CmdType::CMD_INSERT;
                    let write = if inserts { insert((**action).override_) } else { Write::Update };
                    record_columns((**action).targetList, write, row);
                }
            }
            _ => {}
        }
    }
}

/// Returns the nodes of a list. Unlike a `PgList`, the slice is read without a call of the server.
///
/// # Safety
/// The pointer is null, or a list of pointers to such nodes.
unsafe fn nodes<'a, T>(list: *mut pg_sys::List) -> &'a mut [*mut T] {
    // SAFETY: the elements of a list are contiguous cells, and a cell of such a list is a pointer.
    unsafe {
        let Some(list) = list.as_ref() else { return &mut [] };
        std::slice::from_raw_parts_mut(list.elements.cast(), usize::try_from(list.length).unwrap_or_default())
    }
}

/// Returns the node with this number in a list, where numbers begin with 1.
fn nth<T>(nodes: &[*mut T], number: impl TryInto<usize>) -> Option<*mut T> {
    nodes.get(number.try_into().ok()?.checked_sub(1)?).copied()
}

fn insert(overriding: pg_sys::OverridingKind::Type) -> Write {
    match overriding {
        pg_sys::OverridingKind::OVERRIDING_USER_VALUE => Write::InsertOverridingUserValue,
        pg_sys::OverridingKind::OVERRIDING_SYSTEM_VALUE => Write::InsertOverridingSystemValue,
        _ => Write::Insert,
    }
}

/// # Safety
/// The list holds the target entries of the row.
unsafe fn record_columns(columns: *mut pg_sys::List, write: Write, row: WrittenRow<'_>) {
    // SAFETY: the lists are valid; the tag of a node names its struct.
    unsafe {
        for column in nodes::<pg_sys::TargetEntry>(columns) {
            let column = *column;
            let slot: *mut *mut c_void = (&raw mut (*column).expr).cast();
            let number = (*column).resno;
            let former = row.identities.iter().find(|(of, _)| *of == number && !(*column).resjunk);
            if let Some((_, identity)) = former {
                let mut is_default = true;
                each_value(slot, row.tables, |value| {
                    is_default &= gives_id(*unconverted(value), row.targets);
                });
                let name = || pg_sys::get_attname(row.table, number, true);
                match stored(*identity, write, is_default) {
                    Ok(Stored::Written) => {}
                    Ok(Stored::Default) => {
                        each_value(slot, row.tables, |value| take_no_id(value, row.targets));
                        *slot = default_of(row.table, number).cast();
                    }
                    Err(error) => raise(report(error.of(CStr::from_ptr(name()).to_string_lossy()))),
                }
            }
            each_value(slot, row.tables, |value| record_value(value, row.table, number, row.targets));
        }
    }
}

/// Calls `work` for the slot of a column's value. If VALUES has several rows, as in VALUES (DEFAULT, ...), (DEFAULT, ...), the
/// value is a Var that refers to the VALUES list, and there is a slot in each row. The Var may be inside a cast to the column's
/// type.
///
/// # Safety
/// The slot holds a node or null; `tables` is the range table of its query.
unsafe fn each_value(
    slot: *mut *mut c_void,
    tables: &[*mut pg_sys::RangeTblEntry],
    mut work: impl FnMut(*mut *mut c_void),
) {
    // SAFETY: the lists are valid; the tag of a node names its struct.
    unsafe {
        let value = unconverted(slot);
        if !is_node(*value, pg_sys::NodeTag::T_Var) {
            return work(slot);
        }
        let var: *mut pg_sys::Var = (*value).cast();
        let rows = nth(tables, (*var).varno).filter(|rows| (**rows).rtekind == pg_sys::RTEKind::RTE_VALUES);
        let cell = usize::try_from((*var).varattno).ok().and_then(|number| number.checked_sub(1));
        let (Some(rows), Some(cell)) = (rows, cell) else { return work(slot) };
        for row in nodes::<pg_sys::List>((*rows).values_lists) {
            if let Some(value) = nodes::<c_void>(*row).get_mut(cell) {
                work(value);
            }
        }
    }
}

/// Replaces a value that creates an id by NULL, because the value is ignored.
///
/// # Safety
/// The slot holds a node or null. The new node is allocated in the planner's memory context.
unsafe fn take_no_id(slot: *mut *mut c_void, targets: &Targets) {
    // SAFETY: the slot holds an expression, because its value creates an id.
    unsafe {
        if gives_id(*unconverted(slot), targets) {
            let value: *mut pg_sys::Node = (*slot).cast();
            let (kind, modifier) = (pg_sys::exprType(value), pg_sys::exprTypmod(value));
            *slot = pg_sys::makeNullConst(kind, modifier, pg_sys::exprCollation(value)).cast();
        }
    }
}

/// Returns the default of a column, before it is planned; null if there is none.
///
/// # Safety
/// The caller is within a transaction, and the table is locked. The result is allocated in the current memory context.
unsafe fn default_of(table: pg_sys::Oid, column: i16) -> *mut pg_sys::Node {
    let build = |entry: &pg_sys::RelationData| {
        // SAFETY: the server reads the entry, and allocates a copy of the default.
        unsafe { pg_sys::build_column_default(std::ptr::from_ref(entry).cast_mut(), column.into()) }
    };
    relcache::with_entry(table, build).unwrap_or(std::ptr::null_mut())
}

/// Returns the columns of a table that have a default or an identity. Call only within a transaction, with a lock on the table.
pub(super) fn columns_with_defaults(table: pg_sys::Oid) -> BTreeSet<i16> {
    let read = |entry: &pg_sys::RelationData| {
        // SAFETY: an entry has a descriptor, whose constraints are null, or hold as many defaults as they say.
        unsafe {
            let Some(constraints) = (*entry.rd_att).constr.as_ref() else { return Vec::new() };
            (0..usize::from(constraints.num_defval))
                .map(|place| (*constraints.defval.add(place)).adnum)
                .collect()
        }
    };
    let defaults: Vec<i16> = relcache::with_entry(table, read).unwrap_or_default();
    // SAFETY: the caller is within a transaction. A generated column has no default.
    let is_default = |column: &i16| unsafe { pg_sys::get_attgenerated(table, *column) } == 0;
    let owned = sequence::owned_by(table).into_iter().map(|(column, _)| column);
    defaults.into_iter().filter(is_default).chain(owned).collect()
}

/// Returns the text of a String node.
///
/// # Safety
/// The node is a String.
pub(super) unsafe fn string(node: *const c_void) -> *const c_char {
    // SAFETY: the caller passes a String.
    unsafe {
        #[cfg(feature = "pg14")]
        let text = (*node.cast::<pg_sys::Value>()).val.str_;
        #[cfg(not(feature = "pg14"))]
        let text = (*node.cast::<pg_sys::String>()).sval;
        text
    }
}

/// Returns whether a default is nothing but this call.
///
/// # Safety
/// The call is a node. The caller is within a transaction, and has locked the table.
pub(super) unsafe fn default_is(table: pg_sys::Oid, column: i16, call: *const pg_sys::FuncExpr) -> bool {
    // SAFETY: the default is a node or null; the tag of a node names its struct.
    unsafe {
        let mut default: *mut c_void = default_of(table, column).cast();
        let value = *unconverted(&raw mut default);
        let same = |of: *const pg_sys::FuncExpr| {
            (*of).funcid == (*call).funcid && pg_sys::equal((*of).args.cast(), (*call).args.cast())
        };
        is_node(value, pg_sys::NodeTag::T_FuncExpr) && same(value.cast())
    }
}

/// A column or a domain whose default takes ids of a tag.
pub struct TaggedDefault {
    pub tag: TextOut,
    /// The table or the domain.
    owner: pg_sys::Oid,
    /// The number of the column; 0 for a domain.
    column: i16,
}

impl TaggedDefault {
    /// Returns whether the column or the domain has been dropped. Call only within a transaction.
    pub fn is_gone(&self) -> bool {
        if self.column == 0 {
            return tuple::cached(pg_sys::SysCacheIdentifier::TYPEOID, self.owner, |_| ()).is_none();
        }
        // SAFETY: the caller is within a transaction. The type of a dropped column is no OID.
        unsafe { pg_sys::get_atttype(self.owner, self.column) == pg_sys::InvalidOid }
    }
}

/// Returns the default with this OID, or that of the domain with this OID, if it takes ids of a tag. Call only within a
/// transaction.
pub fn tagged_default(of: pg_sys::Oid, is_domain: bool) -> Option<TaggedDefault> {
    let (owner, column, default) =
        if is_domain { (of, 0, domain_default(of)?) } else { relation::column_of_default(of)? };
    // SAFETY: the caller is within a transaction; the default is a node.
    unsafe { tag_of(default) }.map(|tag| TaggedDefault { tag, owner, column })
}

fn domain_default(domain: pg_sys::Oid) -> Option<*mut c_void> {
    let cache = pg_sys::SysCacheIdentifier::TYPEOID;
    let column = i16::try_from(pg_sys::Anum_pg_type_typdefaultbin).unwrap_or_default();
    // SAFETY: the row is one of this cache. The default is the text of a node.
    let written = tuple::cached(cache, domain, |row| unsafe {
        let written = tuple::cached_column(cache, row, column)?;
        Some(pg_sys::stringToNode(pg_sys::text_to_cstring(written.cast_mut_ptr())))
    });
    written.flatten()
}

/// Returns the tag that a default names; None if it is another default.
///
/// # Safety
/// The pointer is a node or null. The caller is within a transaction.
unsafe fn tag_of(mut default: *mut c_void) -> Option<TextOut> {
    // SAFETY: the tag of a node names its struct.
    unsafe {
        let call: *mut pg_sys::FuncExpr = (*unconverted(&raw mut default)).cast();
        if !is_node(call.cast(), pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        let argument = *nodes::<pg_sys::Const>((*call).args).first()?;
        if !is_node(argument.cast(), pg_sys::NodeTag::T_Const)
            || (*argument).consttype != pg_sys::TEXTOID
            || (*argument).constisnull
        {
            return None;
        }
        // Users may have functions of the same names.
        extension::of_member(pg_sys::ProcedureRelationId, (*call).funcid)?;
        let takes = catalog::function_name((*call).funcid)?.to_bytes().starts_with(b"segment_");
        let tag = CStr::from_ptr(pg_sys::text_to_cstring((*argument).constvalue.cast_mut_ptr()));
        takes.then(|| TextOut::of_bytes(tag.to_bytes()))
    }
}

/// Returns the sequences from which the default of a column takes its next numbers, and whether the default is nothing else. Call
/// only within a transaction, with a lock on the table.
pub fn sequences_of_default(table: pg_sys::Oid, column: i16) -> (Vec<pg_sys::Oid>, bool) {
    let mut found: Vec<pg_sys::Oid> = Vec::new();
    // SAFETY: the default is a node or null; the walker gets the list that it adds to.
    unsafe {
        let mut default: *mut c_void = default_of(table, column).cast();
        find_next(default.cast(), (&raw mut found).cast());
        let value = *unconverted(&raw mut default);
        let is_call = is_node(value, pg_sys::NodeTag::T_FuncExpr)
            && (*value.cast::<pg_sys::FuncExpr>()).funcid == Called::Nextval.oid();
        (found, is_call || is_node(value, pg_sys::NodeTag::T_NextValueExpr))
    }
}

/// Returns whether the default of a column is nothing but a call of a function of this extension. Call only within a transaction,
/// with a lock on the table.
pub fn calls_extension(table: pg_sys::Oid, column: i16) -> bool {
    // SAFETY: the default is a node or null; the tag of a node names its struct.
    unsafe {
        let mut default: *mut c_void = default_of(table, column).cast();
        let call = *unconverted(&raw mut default);
        is_node(call, pg_sys::NodeTag::T_FuncExpr)
            && extension::of_member(pg_sys::ProcedureRelationId, (*call.cast::<pg_sys::FuncExpr>()).funcid)
                .is_some()
    }
}

/// Adds the sequences of calls of `nextval` to a list.
#[pg_guard]
unsafe extern "C-unwind" fn find_next(node: *mut pg_sys::Node, found: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: the context is the list; the tag of a node names its struct.
    unsafe {
        let list: &mut Vec<pg_sys::Oid> = &mut *found.cast();
        let value: *mut c_void = node.cast();
        if (*node).type_ == pg_sys::NodeTag::T_NextValueExpr {
            list.push((*value.cast::<pg_sys::NextValueExpr>()).seqid);
        } else if (*node).type_ == pg_sys::NodeTag::T_FuncExpr
            && (*value.cast::<pg_sys::FuncExpr>()).funcid == Called::Nextval.oid()
            && let Some(argument) = nodes::<pg_sys::Const>((*value.cast::<pg_sys::FuncExpr>()).args).first()
            && is_node((*argument).cast(), pg_sys::NodeTag::T_Const)
        {
            list.extend(pg_sys::Oid::from_datum((**argument).constvalue, (**argument).constisnull));
        }
        walk_expression(node, find_next, found)
    }
}

/// Returns whether the default of a column creates ids. Call only within a transaction, with a lock on the table.
pub fn default_gives_id(table: pg_sys::Oid, column: i16, targets: &Targets) -> bool {
    // SAFETY: the caller is within a transaction, and has locked the table; the default is a node or null.
    unsafe {
        let mut default: *mut c_void = default_of(table, column).cast();
        gives_id(*unconverted(&raw mut default), targets)
    }
}

/// # Safety
/// The slot holds the value of this column: a node or null. The new node is allocated in the planner's memory context.
unsafe fn record_value(slot: *mut *mut c_void, table: pg_sys::Oid, column: i16, targets: &Targets) {
    // SAFETY: the slot holds a node or null.
    unsafe {
        let slot = unconverted(slot);
        if gives_id(*slot, targets) {
            match (targets.of_column)(table, column) {
                Some(sequence) => *slot = make_call(targets.recorded, sequence, Some((*slot).cast())).cast(),
                None => sequence::record_plain_plan(),
            }
        }
    }
}

/// # Safety
/// The pointer is a node or null.
pub(super) unsafe fn is_node(node: *const c_void, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: the pointer is a node or null.
    unsafe { !node.is_null() && (*node.cast::<pg_sys::Node>()).type_ == tag }
}

/// Strips the casts to integer, smallint, `snowflake_id` and domains. Returns the slot of the value below the casts.
///
/// # Safety
/// The slot holds a node or null.
unsafe fn unconverted(mut slot: *mut *mut c_void) -> *mut *mut c_void {
    // SAFETY: the slot holds a node or null; the tag of a node names its struct.
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

/// Returns whether a node is a call of a function that creates ids in column defaults.
///
/// # Safety
/// The pointer is a node or null.
unsafe fn gives_id(node: *mut c_void, targets: &Targets) -> bool {
    // SAFETY: the pointer is a node or null; the tag of a node names its struct.
    unsafe {
        is_node(node, pg_sys::NodeTag::T_FuncExpr)
            && targets.ids.contains(&(*node.cast::<pg_sys::FuncExpr>()).funcid)
    }
}

/// Builds a call that returns a bigint. Its arguments are the sequence and, if given, one more node.
///
/// # Safety
/// The argument is a node. The result is allocated in the current memory context.
unsafe fn make_call(
    function: pg_sys::Oid,
    sequence: pg_sys::Oid,
    argument: Option<*mut pg_sys::Node>,
) -> *mut pg_sys::FuncExpr {
    let (no_oid, size) = (pg_sys::InvalidOid, 4);
    let format = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    // SAFETY: the argument is a node.
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

/// Walks a query and redirects its calls. Calls are changed in place. The default of an identity column is a
/// `NextValueExpr`. This node is too small for a call, so the pointer to the node is replaced.
///
/// This function and the walkers have no pgrx guard and no values to drop, so errors can safely jump over them.
unsafe extern "C-unwind" fn redirect_node(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag;
    if node.is_null() {
        return false;
    }
    // SAFETY: the context is the targets that `plan` passed; the tag of a node names its struct; the query owns its nodes.
    unsafe {
        match (*node).type_ {
            NodeTag::T_Query => {
                let query: *mut pg_sys::Query = node.cast();
                if (*query).resultRelation > 0 {
                    record_defaults(&*query, &*context.cast());
                }
                return walk_query(query, redirect_node, context, 0);
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
                for slot in nodes::<c_void>(node.cast()) {
                    replace_next_value(slot, context.cast());
                }
            }
            _ => {}
        }
        walk_expression(node, redirect_node, context)
    }
}

/// Replaces a `NextValueExpr` with a call.
///
/// # Safety
/// The slot holds a node or null.
unsafe fn replace_next_value(slot: *mut *mut c_void, targets: *const Targets) {
    // SAFETY: the slot holds a node or null.
    unsafe {
        let node: *mut pg_sys::Node = (*slot).cast();
        if !node.is_null() && (*node).type_ == pg_sys::NodeTag::T_NextValueExpr {
            let call = call_for(node, &*targets);
            if !call.is_null() {
                *slot = call.cast();
            }
        }
    }
}

/// The parse location that marks a call as the default of an identity column. No parser produces this location.
const IDENTITY: c_int = -1_574;

/// Builds the call that replaces a `NextValueExpr`, with a cast to the type of the column. Returns null if the type is not
/// bigint, integer or smallint.
///
/// # Safety
/// The node is a `NextValueExpr`.
#[pg_guard]
unsafe extern "C-unwind" fn call_for(node: *mut pg_sys::Node, targets: &Targets) -> *mut pg_sys::Node {
    // SAFETY: the node is a `NextValueExpr`; the result is allocated in the planner's memory context.
    unsafe {
        let next: *mut pg_sys::NextValueExpr = node.cast();
        let next_of = make_call(targets.calls[Called::Nextval as usize], (*next).seqid, None);
        (*next_of).location = IDENTITY;
        let narrow = match (*next).typeId {
            pg_sys::INT8OID => return next_of.cast(),
            // The sequences of integer and smallint columns keep their own numbers. Calls for these sequences are redirected,
            // too, so that the extension's `lastval` knows about the calls.
            pg_sys::INT4OID => INT4,
            pg_sys::INT2OID => INT2,
            _ => return std::ptr::null_mut(),
        };
        let mut arguments = pgrx::PgList::<pg_sys::FuncExpr>::new();
        arguments.push(next_of);
        let (no_oid, format) = (pg_sys::InvalidOid, pg_sys::CoercionForm::COERCE_IMPLICIT_CAST);
        pg_sys::makeFuncExpr(narrow.into(), (*next).typeId, arguments.into_pg(), no_oid, no_oid, format)
            .cast()
    }
}

/// Returns whether a call replaces the default of an identity column. The server checks no privileges on the sequence of
/// such a default. No user can write such a call.
///
/// # Safety
/// The server has passed `call` to the function that it calls.
pub unsafe fn is_of_identity(call: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: the caller passes the server's argument. The expression is null, or a node whose tag names its struct.
    unsafe {
        let Some(function) = (*call).flinfo.as_ref() else { return false };
        let expression: *mut c_void = function.fn_expr.cast();
        !expression.is_null()
            && (*expression.cast::<pg_sys::Node>()).type_ == pg_sys::NodeTag::T_FuncExpr
            && (*expression.cast::<pg_sys::FuncExpr>()).location == IDENTITY
    }
}
