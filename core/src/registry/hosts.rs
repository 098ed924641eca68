//! Splits libpq's connection options into one set of options for each host.
//!
//! libpq tries the hosts of a list in turn. But libpq has a time limit per host only for blocking connections. In
//! non-blocking mode, a host that never answers would use up the time of all hosts. So this module splits the list by
//! libpq's own rules. libpq can also resolve host names, but a process cannot interrupt the resolution. The caller of
//! this module therefore resolves each name itself, and gives libpq the addresses in `hostaddr`.

use std::net::IpAddr;

/// The name and the value of an option.
pub type Setting = (String, String);

/// The options whose value is a list with one element per host.
const LISTS: [&str; 3] = ["host", "hostaddr", "port"];

/// Returns a set of options for each host, in order. Other options are the same in each set. An invalid list is returned
/// unchanged, so that libpq reports the error.
pub fn each(options: &[Setting]) -> Vec<Vec<Setting>> {
    split(options).unwrap_or_else(|| vec![options.to_vec()])
}

/// Returns the host name to resolve; None if there are several hosts, or if the host's address is known.
pub fn name(options: &[Setting]) -> Option<&str> {
    let [hosts, addresses, ports] = LISTS.map(|name| elements(options, name));
    let several_ports = ports.is_some_and(|ports| ports.len() > 1);
    match hosts?[..] {
        [host] if addresses.is_none() && !several_ports && !is_socket(host) => Some(host),
        _ => None,
    }
    .filter(|host| host.parse::<IpAddr>().is_err())
}

/// Returns whether a host is a directory of Unix sockets, or an abstract socket.
fn is_socket(host: &str) -> bool {
    host.starts_with(['/', '@'])
}

/// Returns the options with all addresses of a host name. libpq tries the addresses in turn.
pub fn with_addresses(options: &[Setting], name: &str, addresses: &[String]) -> Vec<Setting> {
    let names = vec![name; addresses.len()].join(",");
    let found = [("host", names), ("hostaddr", addresses.join(","))];
    options.iter().cloned().chain(found.map(|(name, value)| (name.to_owned(), value))).collect()
}

fn split(options: &[Setting]) -> Option<Vec<Vec<Setting>>> {
    let [hosts, addresses, ports] = LISTS.map(|name| elements(options, name));
    let count = addresses.as_ref().or(hosts.as_ref()).map_or(1, Vec::len);
    // A single port applies to all hosts.
    let ports = ports.map(|ports| if ports.len() == 1 { ports.repeat(count) } else { ports });
    let lists = [hosts, addresses, ports].map(Option::unwrap_or_default);
    if count == 1 || lists.iter().any(|list| !list.is_empty() && list.len() != count) {
        return None;
    }
    let others: Vec<_> = options.iter().filter(|(name, _)| !LISTS.contains(&name.as_str())).collect();
    let one = |index: usize| {
        let its_own = LISTS.into_iter().zip(&lists).filter_map(|(name, list)| {
            // An empty element means the default value, like a missing option.
            let value = list.get(index).filter(|value| !value.is_empty())?;
            Some((name.to_owned(), (*value).to_owned()))
        });
        others.iter().copied().cloned().chain(its_own).collect()
    };
    Some((0..count).map(one).collect())
}

/// Returns the elements of an option's value. If the option occurs more than once, its last non-empty value counts.
fn elements<'a>(options: &'a [Setting], name: &str) -> Option<Vec<&'a str>> {
    let (_, value) = options.iter().rfind(|(key, value)| key == name && !value.is_empty())?;
    Some(value.split(',').collect())
}
