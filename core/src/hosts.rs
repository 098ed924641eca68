//! Connection options with several hosts, one host at a time.
//!
//! libpq tries the hosts of a list in turn, but knows a time limit for each only where connecting blocks. Where it does
//! not, a host that never answers would use up the time of all. So the list is taken apart, by libpq's own rules.

/// An option's name and its value.
pub type Setting = (String, String);

/// What has a list, one for each host.
const LISTS: [&str; 3] = ["host", "hostaddr", "port"];

/// One list of options per host, in their order; all else is the same in each. A list that libpq would refuse stays as it
/// is, for libpq to say what is wrong with it; so does one with a single host, or without any.
pub fn each(options: &[Setting]) -> Vec<Vec<Setting>> {
    split(options).unwrap_or_else(|| vec![options.to_vec()])
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
