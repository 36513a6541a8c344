// SPDX-License-Identifier: Apache-2.0
//! Named sets of values. A configuration takes one with `preset = "paper"` and may change its values.

use toml::{Table, Value};

/// Name and text of each preset (presets/*.toml).
const PRESETS: [(&str, &str); 2] =
    [("paper", include_str!("../../presets/paper.toml")), ("today", include_str!("../../presets/today.toml"))];

/// Fills in the values of the configuration's preset where the configuration does not set them.
///
/// # Errors
/// No preset has this name.
pub fn fill_in(table: &mut Table) -> Result<(), String> {
    let Some(name) = table.get("preset") else { return Ok(()) };
    let names = PRESETS.map(|(name, _)| name).join(", ");
    let text = PRESETS.iter().find(|(known, _)| name.as_str() == Some(known));
    let (_, text) = text.ok_or_else(|| format!("preset must be one of {names}, not {name}"))?;
    let preset: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    below(table, preset);
    Ok(())
}

fn below(table: &mut Table, usual: Table) {
    for (key, value) in usual {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(usual)) => below(own, usual),
            (Some(_), _) => {}
            (None, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    const REST: &str = "policy = 'aspf-star'\n[memory]\nframes = 64\n[[process]]\nname = 'P'\ntrace = ''\n";

    fn settings(text: &str) -> Result<Settings, String> {
        let mut table: Table = text.parse().unwrap();
        fill_in(&mut table)?;
        Value::Table(table).try_into().map_err(|error: toml::de::Error| error.to_string())
    }

    #[test]
    fn the_defaults_are_today_with_four_readings_of_paper() {
        let plain = settings(REST).unwrap();
        let four = "set_capacity = 16\nfull_set = 'leave'\nsets_span_turns = true\nrebuilt = 'next-only'\naccessed = 'last-turn'\n";
        let today = settings(&format!("preset = 'today'\n{REST}[aspf]\n{four}")).unwrap();
        let today = Settings { preset: None, ..today };
        assert_eq!(toml::to_string(&plain).unwrap(), toml::to_string(&today).unwrap());
    }

    #[test]
    fn a_configuration_changes_its_preset() {
        let found = settings(&format!("preset = 'paper'\n{REST}[aspf]\nset_capacity = 9\n")).unwrap();
        assert_eq!((found.aspf.set_capacity, found.aspf.sets_span_turns, found.cpu.instruction_ns), (9, true, 0.0));
    }

    #[test]
    fn an_unknown_preset_is_refused_with_the_list() {
        let error = settings(&format!("preset = 'papre'\n{REST}")).unwrap_err();
        assert_eq!(error, "preset must be one of paper, today, not \"papre\"");
    }

    #[test]
    fn every_preset_is_whole() {
        for (name, _) in PRESETS {
            settings(&format!("preset = '{name}'\n{REST}")).unwrap();
        }
    }
}
