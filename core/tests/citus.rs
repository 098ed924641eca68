//! A Citus cluster: libpq's options for the coordinator, and faults of nodes.

use snowflake_ids_core::registry::citus::{
    ClusterError, ClusterNode, ClusterNotice, Coordinator, Faults, Judged, conclude, judge,
};

fn settings(named: &[(&str, &str)]) -> Vec<(String, String)> {
    named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The value that libpq uses: the last value given for the name.
fn last<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[test]
fn the_catalog_says_where_to_and_citus_settings_how() {
    let slot = Coordinator {
        host: "coordinator".to_owned(),
        port: 5433,
        database: "app".to_owned(),
        user: "postgres".to_owned(),
    };
    let of_all = settings(&[("sslmode", "require"), ("sslrootcert", "ca"), ("host", "elsewhere")]);
    let of_role = settings(&[
        ("sslmode", "verify-full"),
        ("password", "secret"),
        ("user", "other"),
        ("hostaddr", "::1"),
    ]);
    let options = slot.options(of_all, of_role);
    let wanted = [
        ("host", Some("coordinator")),
        ("port", Some("5433")),
        ("dbname", Some("app")),
        ("user", Some("postgres")),
        ("target_session_attrs", Some("read-write")),
        ("sslmode", Some("verify-full")),
        ("sslrootcert", Some("ca")),
        ("password", Some("secret")),
        ("hostaddr", None),
    ];
    for (name, value) in wanted {
        assert_eq!(last(&options, name), value, "{name}");
    }
    assert_eq!(
        options.iter().filter(|(name, _)| name == "host").count(),
        1,
        "lists of hosts are taken apart"
    );
}

/// A node that is in the group `group_id` and issues under the worker id `worker_id`. The coordinator is in group 0.
fn node(group_id: i32, worker_id: i32) -> ClusterNode {
    let registry = if group_id == 0 { "null" } else { "\"citus_coordinator\"" };
    ClusterNode {
        node_id: group_id + 1,
        node_name: "host".to_owned(),
        node_port: 5432,
        group_id,
        is_active: true,
        version: Some("1.0".to_owned()),
        report: Some(format!(
            r#"{{"datacenter_id": 0, "worker_id": {worker_id}, "layout": "41/0/10/12", "state": "ready",
                "identity": "main", "timeline": "3", "registry": {registry},
                "generators": "g", "rights": "r", "defaults": "d"}}"#
        )),
        error: None,
    }
}

fn cluster() -> Vec<ClusterNode> {
    (0..4).map(|group| node(group, group)).collect()
}

fn edited(node: &ClusterNode, from: &str, to: &str) -> ClusterNode {
    let report = node.report.as_deref().map(|report| report.replace(from, to));
    assert_ne!(report, node.report, "{from}");
    ClusterNode { report, ..node.clone() }
}

/// A copy of `node` that is in the state `state` and has no worker id.
fn without(node: &ClusterNode, state: &str) -> ClusterNode {
    let worker = format!("\"worker_id\": {}", node.node_id - 1);
    edited(&edited(node, &worker, "\"worker_id\": null"), "\"ready\"", &format!("\"{state}\""))
}

#[test]
fn a_node_that_was_asked_for_no_id_yet_is_well() {
    let mut nodes = cluster();
    nodes[2] = without(&nodes[2], "idle");
    assert_eq!(problems(nodes), [None, None, None, None]);
}

fn problems(nodes: Vec<ClusterNode>) -> Vec<Option<String>> {
    judge(nodes).into_iter().map(|judged| judged.problem.map(|problem| problem.to_string())).collect()
}

#[test]
fn nothing_is_wrong_with_nodes_that_agree() {
    assert_eq!(problems(cluster()), [None, None, None, None]);
    assert!(judge(Vec::new()).is_empty());
}

#[test]
fn what_is_wrong_with_a_node_is_said_of_it_alone() {
    let silent = ClusterNode {
        version: None,
        report: None,
        error: Some("connection refused".to_owned()),
        ..node(2, 2)
    };
    let mute = ClusterNode { report: None, error: Some("it must be loaded".to_owned()), ..node(2, 2) };
    let of_nobody = edited(&edited(&node(2, 2), "\"main\"", "\"its own\""), "\"citus_coordinator\"", "null");
    let edited = |from: &str, to: &str| edited(&node(2, 2), from, to);
    let cases = [
        (ClusterNode { is_active: false, ..node(2, 2) }, "not active"),
        (
            edited(
                "\"ready\"",
                r#""ready", "failure": {"server": "ids", "at": "2026-11-25", "error": "it was set back"}"#,
            ),
            "registry \"ids\" failed when it asked last, at 2026-11-25: it was set back",
        ),
        (silent, "could not be queried: connection refused"),
        (ClusterNode { version: Some(String::new()), report: None, ..node(2, 2) }, "not created"),
        (
            ClusterNode { version: Some("0.9".to_owned()), ..node(2, 2) },
            "version 0.9 of the extension, but node 1 has 1.0",
        ),
        (mute, "report its state: it must be loaded"),
        (ClusterNode { report: Some("{".to_owned()), ..node(2, 2) }, "report its state: EOF"),
        (edited("41/0/10/12", "41/0/5/17"), "layout is 41/0/5/17, but that of node 1 is 41/0/10/12"),
        (edited("\"main\"", "\"another\""), "\"citus_coordinator\", is not the cluster's"),
        (
            edited("\"timeline\": \"3\"", "\"timeline\": \"2\""),
            "was on timeline 2 when it last asked, and on timeline 3 for node 1",
        ),
        (edited("\"generators\": \"g\"", "\"generators\": \"h\""), "generators are not those of node 1"),
        (edited("\"defaults\": \"d\"", "\"defaults\": \"e\""), "other defaults for ids there than on node 1"),
        (edited("\"rights\": \"r\"", "\"rights\": \"s\""), "rights on segment tags are not those of node 1"),
        (of_nobody, "uses no registry"),
        (without(&node(2, 2), "none is free"), "no worker id: none is free"),
    ];
    for (wrong, said) in cases {
        let mut nodes = cluster();
        nodes[2] = wrong;
        let found = problems(nodes);
        assert!(found[2].as_ref().is_some_and(|found| found.contains(said)), "{said}: {found:?}");
        assert_eq!([&found[0], &found[1], &found[3]], [&None; 3], "{said}");
    }
}

#[test]
fn only_a_worker_id_of_its_own_is_waited_for() {
    let mut nodes = cluster();
    nodes[1] = without(&nodes[1], "none is free");
    nodes[2].is_active = false;
    nodes[3] = edited(&nodes[3], "\"worker_id\": 3", "\"worker_id\": 0");
    let may_pass = |judged: Judged| judged.problem.is_some_and(|problem| problem.may_pass());
    assert_eq!(judge(nodes).into_iter().map(may_pass).collect::<Vec<_>>(), [true, true, false, true]);
}

/// Worker ids are unique per datacenter only.
#[test]
fn two_nodes_with_one_worker_id_are_both_named() {
    let mut nodes = cluster();
    nodes[3] = edited(&nodes[3], "\"worker_id\": 3", "\"worker_id\": 1");
    let found = problems(nodes.clone());
    assert!(found[1].as_ref().is_some_and(|found| found.contains("is also that of node 4")), "{found:?}");
    assert!(found[3].as_ref().is_some_and(|found| found.contains("is also that of node 2")), "{found:?}");
    nodes[3] = edited(&nodes[3], "\"datacenter_id\": 0", "\"datacenter_id\": 1");
    assert_eq!(problems(nodes), [None, None, None, None]);
}

/// The coordinator is being restarted, and the workers issue ids meanwhile.
#[test]
fn without_the_coordinator_workers_are_compared_with_each_other() {
    let mut nodes = cluster();
    (nodes[0].version, nodes[0].report) = (None, None);
    nodes[3] = edited(&nodes[3], "\"main\"", "\"another\"");
    let found = problems(nodes.clone());
    assert!(found[0].is_some() && found[3].is_some(), "{found:?}");
    assert_eq!([&found[1], &found[2]], [&None; 2]);
    assert_eq!(problems(nodes.split_off(1)), found[1..]);
    let alone = edited(&edited(&node(1, 1), "\"main\"", "\"its own\""), "\"citus_coordinator\"", "null");
    assert!(problems(vec![alone])[0].is_some());
}

/// The coordinator uses an outside registry. A worker that uses another registry has a problem.
#[test]
fn a_coordinator_that_uses_a_registry_says_which() {
    let outside = |node: &ClusterNode| edited(node, "\"main\"", "\"outside\"");
    let nodes = cluster();
    let mut moved: Vec<ClusterNode> = nodes.iter().map(outside).collect();
    assert_eq!(problems(moved.clone()), [None, None, None, None]);
    moved[1] = nodes[1].clone();
    assert!(problems(moved)[1].is_some());
}

/// A standby of the coordinator was promoted, and the former coordinator still runs. The former coordinator has a problem; the
/// workers have none.
#[test]
fn a_former_coordinator_is_told_of_itself() {
    let mut nodes = cluster();
    for worker in &mut nodes[1..] {
        *worker = edited(worker, "\"timeline\": \"3\"", "\"timeline\": \"4\"");
    }
    nodes[3] = node(3, 3);
    let found = problems(nodes);
    assert!(
        found[0].as_ref().is_some_and(|problem| problem.contains("node 2 has seen timeline 4")
            || problem.contains("node 3 has seen timeline 4")),
        "{found:?}"
    );
    assert_eq!(found[1..], [None, None, None]);
}

/// Only faults that may pass by themselves are waited for.
#[test]
fn nodes_are_united_once_each_has_a_worker_id() {
    let faults = |node: i32| Faults::from([(node, "no".to_owned())]);
    let ended = |nodes, told: Faults, idle: Faults| match conclude(judge(nodes), &told, &idle) {
        Err((ClusterError::Nodes(1, count, detail), may_pass)) => Err((count, detail, may_pass)),
        Err(other) => panic!("{other:?}"),
        Ok(united) => Ok(united),
    };
    let (none, said) = (Faults::new, |fault: &str| format!("node 3 (host:5432): {fault}"));
    assert_eq!(ended(cluster(), none(), none()), Ok(ClusterNotice::United(4, "0, 1, 2, 3".to_owned())));
    assert_eq!(ended(cluster(), faults(3), none()), Err((4, said("no"), false)));
    assert_eq!(ended(cluster(), none(), faults(3)), Err((4, said("no"), true)));
    let mut nodes = cluster();
    nodes[2] = without(&nodes[2], "idle");
    assert_eq!(ended(nodes, none(), none()), Err((4, said("it has no worker id yet"), true)));
    let mut nodes = cluster();
    nodes[2] = edited(&nodes[2], "\"main\"", "\"another\"");
    assert!(
        matches!(ended(nodes.clone(), none(), faults(3)), Err((4, detail, false)) if detail != said("no"))
    );
    nodes[2].is_active = false;
    assert_eq!(ended(nodes, faults(3), none()), Ok(ClusterNotice::United(3, "0, 1, 3".to_owned())));
}
