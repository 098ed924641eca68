//! Functions that decode UUIDs, and functions for a text that contains an id or a UUID.
//!
//! The functions for text exist for arguments without a type, such as a client's parameters. Without these functions, the
//! server could not choose between the functions for ids and the functions for UUIDs.

use super::decode::{timestamp, with_and_without_layout};
use super::layout;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::pg::time;
use crate::pg::uuid::of_argument;
use pgrx::Uuid;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::{Decoded, IdOrUuid, Layout};

/// Returns the time at which a UUID of version 7 was generated, to the millisecond.
#[pg_extern(name = "snowflake_timestamp", immutable, strict, parallel_safe)]
fn timestamp_of_uuid(id: Uuid) -> Result<TimestampWithTimeZone, ErrorReport> {
    time::to_sql(of_argument(id).timestamp().map_err(report)?)
}

/// Returns the smallest UUID of version 7 in the millisecond that contains a time: `WHERE id >= snowflake_min_uuid(...)`.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_min_uuid(at: TimestampWithTimeZone) -> Result<Uuid, ErrorReport> {
    let first = snowflake_ids_core::Uuid::first_of(time::from_sql(at)?).map_err(report)?;
    Ok(Uuid::from_bytes(first.bytes()))
}

with_and_without_layout! {
    "snowflake_datacenter_id" datacenter_id_of_uuid datacenter_id_of_uuid_and_layout (id: Uuid) -> (i32) = datacenter_id_in
}
with_and_without_layout! {
    "snowflake_worker_id" worker_id_of_uuid worker_id_of_uuid_and_layout (id: Uuid) -> (i32) = worker_id_in
}

#[pg_extern(name = "snowflake_timestamp", stable, strict, parallel_safe)]
fn timestamp_of_text(id: Text<'_>) -> Result<TimestampWithTimeZone, ErrorReport> {
    match read(&id)? {
        IdOrUuid::Id(id) => timestamp(&layout::of_server()?, id),
        IdOrUuid::Uuid(uuid) => time::to_sql(uuid.timestamp().map_err(report)?),
    }
}

with_and_without_layout! {
    "snowflake_datacenter_id" datacenter_id_of_text datacenter_id_of_text_and_layout (id: Text<'_>) -> (i32) = datacenter_id_said
}
with_and_without_layout! {
    "snowflake_worker_id" worker_id_of_text worker_id_of_text_and_layout (id: Text<'_>) -> (i32) = worker_id_said
}

fn read(text: &Text<'_>) -> Result<IdOrUuid, ErrorReport> {
    text.read("id")?.parse().map_err(report)
}

fn decoded(layout: &Layout, id: IdOrUuid) -> Result<Decoded, ErrorReport> {
    match id {
        IdOrUuid::Id(id) => layout.decode(id).map_err(report),
        IdOrUuid::Uuid(uuid) => layout.decode_uuid(uuid).map_err(report),
    }
}

fn datacenter_id_in(layout: &Layout, uuid: Uuid) -> Result<i32, ErrorReport> {
    Ok(decoded(layout, IdOrUuid::Uuid(of_argument(uuid)))?.datacenter_id.cast_signed())
}

fn worker_id_in(layout: &Layout, uuid: Uuid) -> Result<i32, ErrorReport> {
    Ok(decoded(layout, IdOrUuid::Uuid(of_argument(uuid)))?.worker_id.cast_signed())
}

fn datacenter_id_said(layout: &Layout, text: Text<'_>) -> Result<i32, ErrorReport> {
    Ok(decoded(layout, read(&text)?)?.datacenter_id.cast_signed())
}

fn worker_id_said(layout: &Layout, text: Text<'_>) -> Result<i32, ErrorReport> {
    Ok(decoded(layout, read(&text)?)?.worker_id.cast_signed())
}
