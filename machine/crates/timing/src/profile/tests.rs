// SPDX-License-Identifier: Apache-2.0
//! Tests of profiles: names, overrides, ranges.

use super::*;

const CLOCK: ClockHz = ClockHz(2_800_000_000);

fn vc707(overrides: &[&str]) -> Result<Profile, ProfileError> {
    Profile::load("vc707", &overrides.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn message(overrides: &[&str]) -> String {
    let text = vc707(overrides).unwrap_err().to_string();
    assert!(!text.contains('\n'), "more than one line: {text}");
    text
}

#[test]
fn built_in_profiles_are_valid() {
    for (name, _) in Profile::BUILT_IN {
        let profile = Profile::load(name, &[]).unwrap();
        assert_eq!((profile.name.as_str(), profile.machine.paging), (name, Paging::Sv39));
    }
}

#[test]
fn overrides_change_one_value() {
    let p = vc707(&["ssd.read_us=10", "machine.harts = 2", "smu.present=false", "name=mine"]).unwrap();
    assert_eq!((p.ssd.read_us, p.machine.harts, p.smu.present, p.name.as_str()), (10.0, 2, false, "mine"));
    assert_eq!(p.core, vc707(&[]).unwrap().core);
    assert_eq!(vc707(&["machine.paging=sv57"]).unwrap().machine.paging, Paging::Sv57);
}

#[test]
fn errors_name_the_profile_the_key_and_the_range() {
    assert_eq!(message(&["core.mmio=-1"]), "profile vc707: core.mmio must be 1 to 10000, not -1");
    assert_eq!(message(&["machine.harts=four"]), "profile vc707: machine.harts must be 1 to 64, not \"four\"");
    assert_eq!(message(&["machine.harts=2.0"]), "profile vc707: machine.harts must be 1 to 64, not 2.0");
    assert_eq!(message(&["ssd.read_us=nan"]), "profile vc707: ssd.read_us must be 4.413 to 10000000, not nan");
    assert_eq!(message(&["ssd.block_bytes=1024"]), "profile vc707: ssd.block_bytes must be 512 or 4096, not 1024");
    assert_eq!(
        message(&["machine.paging=sv64"]),
        "profile vc707: machine.paging must be sv39, sv48 or sv57, not \"sv64\""
    );
    assert_eq!(message(&["machine=3"]), "profile vc707: machine must be a section, not 3");
    for wrong in ["harts", "=1", "machine.=1", ".harts=1", "machine.harts.x=1"] {
        assert_eq!(message(&[wrong]), format!("--set {wrong}: must be section.key=value"));
    }
}

/// The range of a value can depend on other values.
#[test]
fn a_bound_may_be_another_value() {
    assert_eq!(
        message(&["machine.timebase_hz=200_000_000", "machine.clock_hz=100_000_000"]),
        "profile vc707: machine.timebase_hz must be 1000 to 100000000, not 200000000"
    );
    let server = |change: &str| Profile::load("server", &[change.to_owned()]).unwrap_err().to_string();
    assert_eq!(
        server("detail.caches.l1d_ways=3"),
        "profile server: detail.caches.l1d_kib must be 3 ways of a power of two of lines, at most 16777216 lines, not 32"
    );
    assert_eq!(
        server("detail.caches.last_ways=0"),
        "profile server: detail.caches.last_ways must be 1 to 16777216, not 0"
    );
    let without = ["detail.caches.l2_kib=0".into(), "detail.caches.l2_ways=0".into()];
    let config = Profile::load("server", &without).unwrap().detail.unwrap();
    assert!(config.hierarchy(1, CLOCK).l2.is_none());
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_may_be_meant() {
    for (change, hint) in [
        ("machine.hearts=4", "machine.hearts (did you mean machine.harts?)"),
        ("core.harts=4", "core.harts (did you mean machine.harts?)"),
        ("harts=4", "harts (did you mean machine.harts?)"),
        (
            "smu.pmshr=4",
            "smu.pmshr (there are present, pmshr_entries, prefetch_entries, request_cycles, cam_cycles, command_write_ns, doorbell_ns, completion_cycles, update_cycles, notify_cycles, poll_interval_cycles, first_look_cycles, ring_read_ns)",
        ),
        ("machin.harts=4", "machin (did you mean machine?)"),
        ("cpu.frequency=1", "cpu (there are name, machine, core, smu, ssd, detail)"),
        ("detail.cache.l1d_kib=4", "detail.cache (did you mean detail.caches?)"),
    ] {
        assert_eq!(message(&[change]), format!("profile vc707: no such key: {hint}"));
    }
}

/// The profile `server` with all optional keys.
fn everything() -> Profile {
    let shape = "[[0, 1], [0.5, 1.5], [1, 2]]";
    let changes = ["ssd=tlc", "smu.first_look_cycles=3", &format!("ssd.write_shape={shape}")];
    Profile::load("server", &changes.map(str::to_owned)).unwrap()
}

fn keys(section: &str, table: &Table, into: &mut Vec<String>) {
    for (name, value) in table {
        let key = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        match value {
            Value::Table(inner) => keys(&key, inner, into),
            _ => into.push(key),
        }
    }
}

#[test]
fn every_value_has_exactly_one_rule() {
    let table = Table::try_from(everything()).unwrap();
    let (mut values, mut ruled) = (Vec::new(), rules(&table).0.into_iter().map(|(key, _)| key).collect::<Vec<_>>());
    keys("", &table, &mut values);
    values.sort();
    ruled.sort();
    assert_eq!(values, ruled);
}

/// Returns values at the limits of a rule, which it must accept, and values that it must refuse: too small, too large, or of
/// another type.
fn tried(rule: &Rule) -> (Vec<Value>, Vec<Value>) {
    let toml = |texts: &[String]| -> Vec<Value> {
        texts.iter().map(|text| format!("v = {text}").parse::<Table>().unwrap().remove("v").unwrap()).collect()
    };
    let whole = |ends: [i64; 2]| ends.iter().map(ToString::to_string).collect::<Vec<_>>();
    let around = |low: &i64, high: &i64| -> Vec<String> {
        let outside = [low.checked_sub(1), high.checked_add(1)];
        outside.into_iter().flatten().map(|v| v.to_string()).chain(["1.5", "true", "'x'"].map(str::to_owned)).collect()
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (right, wrong) = match rule {
        Rule::Text => (texts(&["'x'"]), texts(&["1", "true"])),
        Rule::Flag => (texts(&["true", "false"]), texts(&["1", "'true'"])),
        Rule::Whole(low, high) => (whole([*low, *high]), around(low, high)),
        Rule::Multiple(low, high, of) => {
            let mut wrong = around(low, high);
            wrong.push((low + of / 2).to_string());
            (whole([*low, *high]), wrong)
        }
        Rule::PowerOfTwo(low, high) => {
            let mut wrong = around(low, high);
            wrong.push((high - 1).to_string());
            (whole([*low, *high]), wrong)
        }
        Rule::Among(all) => {
            (all.iter().map(ToString::to_string).collect(), around(all.first().unwrap(), all.last().unwrap()))
        }
        Rule::Number(low, high) => (
            vec![format!("{low:?}"), format!("{high:?}")],
            vec![format!("{:?}", low - 0.1), format!("{:?}", high * 1.1), "nan".into(), "true".into(), "'1'".into()],
        ),
        Rule::OneOf(all, _) => (all.iter().map(|one| format!("'{one}'")).collect(), texts(&["'floppy'", "1"])),
        Rule::Ways { ways, per_unit, or_none } => {
            // The smallest size with a whole number of entries, and the largest size.
            let least = (1..).find(|units| units * per_unit % ways == 0).unwrap();
            let mut most = least;
            while most * 2 * per_unit <= 1 << 24 {
                most *= 2;
            }
            let mut wrong = around(&0, &(2 * most - 1));
            wrong.push((3 * least).to_string());
            let mut right = whole([least, most]);
            if *or_none {
                right.push("0".into())
            } else {
                wrong.push("0".into())
            }
            (right, wrong)
        }
        Rule::Shape(low, high) => (
            vec!["[]".into(), format!("[[0, {low:?}], [1, {high:?}]]")],
            vec![
                format!("[[0, {:?}], [1, {high:?}]]", low * 0.9),
                format!("[[0, {low:?}], [1, {:?}]]", high * 1.1),
                "[[0, 2], [1, 1]]".into(),
                "[[0, 1]]".into(),
                "[[0, 1], [0.9, 2]]".into(),
                "[[0, 1], [1, nan]]".into(),
                "[[0, 1, 2]]".into(),
                "7".into(),
            ],
        ),
    };
    (toml(&right), toml(&wrong))
}

#[test]
fn every_key_is_checked_below_above_and_for_its_type() {
    let table = Table::try_from(everything()).unwrap();
    let text = table.to_string();
    let mut count = 0;
    for (key, rule) in rules(&table).0 {
        let (right, wrong) = tried(&rule);
        for value in right {
            assert!(rule.admits(&value), "{key} = {value}");
        }
        for value in wrong {
            let error = Profile::parse("server", &text, &[format!("{key}={value}")]).unwrap_err().to_string();
            assert_eq!(error, format!("profile server: {key} must be {}, not {value}", rule.says()));
            count += 1;
        }
    }
    assert!(count > 400, "{count}");
}

#[test]
fn a_missing_key_is_named() {
    let text = Profile::BUILT_IN[0].1.replace("harts = 4", "");
    let e = Profile::parse("f.toml", &text, &[]).unwrap_err().to_string();
    assert_eq!(e, "profile f.toml: machine.harts is missing");
}

#[test]
fn syntax_errors_name_the_line() {
    let e = Profile::parse("f.toml", "a = 1\nb = = 2\n", &[]).unwrap_err().to_string();
    assert!(e.starts_with("profile f.toml: line 2: ") && !e.contains('\n'), "{e}");
}

#[test]
fn a_profile_may_extend_a_built_in_one() {
    let text = "extends = 'server'\nname = 'optane'\n[ssd]\nread_us = 6.5\n";
    let p = Profile::parse("f.toml", text, &[]).unwrap();
    assert_eq!((p.name.as_str(), p.ssd.read_us, p.machine.harts), ("optane", 6.5, 8));
    let e = Profile::parse("f.toml", "extends = 'x'", &[]).unwrap_err().to_string();
    assert_eq!(e, "profile f.toml: extends must be a built-in name (vc707, server, cva6), not \"x\"");
}

#[test]
fn a_profile_that_is_not_there_is_named() {
    let e = Profile::load("no/such.toml", &[]).unwrap_err().to_string();
    assert!(e.starts_with("profile no/such.toml: no such built-in profile (vc707, server, cva6)"), "{e}");
    let e = Profile::load("/", &[]).unwrap_err().to_string();
    assert!(e.starts_with("profile /: cannot read it"), "{e}");
}
