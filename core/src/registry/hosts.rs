//! Connection options, one host at a time.
//!
//! libpq tries the hosts of a list in turn, but knows a time limit for each only where connecting blocks. Where it does
//! not, a host that never answers would use up the time of all. So the list is taken apart, by libpq's own rules. And
//! libpq looks up names where nothing can interrupt it, unless it is given the addresses.

use std::net::IpAddr;

/// An option's name and its value.
pub type Setting = (String, String);

/// The options that have a list, with an element for each host.
const LISTS: [&str; 3] = ["host", "hostaddr", "port"];

/// One list of options per host, in their order; all else is the same in each. A list that libpq would refuse stays as it
/// is, for libpq to say what is wrong with it; so does one with a single host, or without any.
pub fn each(options: &[Setting]) -> Vec<Vec<Setting>> {
    split(options).unwrap_or_else(|| vec![options.to_vec()])
}

/// The name of the host, where there is a single one and its address is to be looked up.
pub fn name(options: &[Setting]) -> Option<&str> {
    let [hosts, addresses, ports] = LISTS.map(|name| elements(options, name));
    let several_ports = ports.is_some_and(|ports| ports.len() > 1);
    match hosts?[..] {
        [host] if addresses.is_none() && !several_ports && !is_socket(host) => Some(host),
        _ => None,
    }
    .filter(|host| host.parse::<IpAddr>().is_err())
}

/// A folder of Unix sockets, or one outside the file system.
fn is_socket(host: &str) -> bool {
    host.starts_with(['/', '@'])
}

/// The options of a host with the addresses that its name stands for, which libpq then tries in turn.
pub fn with_addresses(options: &[Setting], name: &str, addresses: &[String]) -> Vec<Setting> {
    let names = vec![name; addresses.len()].join(",");
    let found = [("host", names), ("hostaddr", addresses.join(","))];
    options.iter().cloned().chain(found.map(|(name, value)| (name.to_owned(), value))).collect()
}

fn split(options: &[Setting]) -> Option<Vec<Vec<Setting>>> {
    let [hosts, addresses, ports] = LISTS.map(|name| elements(options, name));
    let count = addresses.as_ref().or(hosts.as_ref()).map_or(1, Vec::len);
    if count == 1 {
        return None;
    }
    let lists =
        [fit(hosts, count)?, fit(addresses, count)?, fit(ports.map(|ports| repeated(ports, count)), count)?];
    let others: Vec<_> = options.iter().filter(|(name, _)| !LISTS.contains(&name.as_str())).collect();
    let one = |index: usize| {
        let its_own = LISTS.into_iter().zip(&lists).filter_map(|(name, list)| {
            // An empty element means the default, as it does where the option is missing.
            let value = list.get(index).filter(|value| !value.is_empty())?;
            Some((name.to_owned(), (*value).to_owned()))
        });
        others.iter().copied().cloned().chain(its_own).collect()
    };
    Some((0..count).map(one).collect())
}

/// The elements of an option's value. The last of a name counts; an empty one counts for nothing.
fn elements<'a>(options: &'a [Setting], name: &str) -> Option<Vec<&'a str>> {
    let (_, value) = options.iter().rfind(|(key, value)| key == name && !value.is_empty())?;
    Some(value.split(',').collect())
}

/// A single port is that of all hosts.
fn repeated(ports: Vec<&str>, count: usize) -> Vec<&str> {
    match ports[..] {
        [port] => vec![port; count],
        _ => ports,
    }
}

/// One element per host, or none at all; None where their number is another.
fn fit(list: Option<Vec<&str>>, count: usize) -> Option<Vec<&str>> {
    list.map_or(Some(Vec::new()), |list| (list.len() == count).then_some(list))
}
