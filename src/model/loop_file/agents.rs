//! The agents of a loop by name, in the order they are declared: the first one is the default for every role.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::AgentDecl;

/// Declared agents, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agents(Vec<(String, AgentDecl)>);

impl Agents {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AgentDecl)> {
        self.0.iter().map(|(name, agent)| (name.as_str(), agent))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// The agent of this name, with the name as declared.
    pub fn get(&self, name: &str) -> Option<(&str, &AgentDecl)> {
        self.iter().find(|(declared, _)| *declared == name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, AgentDecl)> for Agents {
    fn from_iter<I: IntoIterator<Item = (String, AgentDecl)>>(agents: I) -> Self {
        Self(agents.into_iter().collect())
    }
}

impl Serialize for Agents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, agent) in self.iter() {
            map.serialize_entry(name, agent)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Agents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Agents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of agent names to agents")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Agents, A::Error> {
                let mut agents = Agents::default();
                while let Some((name, agent)) = map.next_entry::<String, AgentDecl>()? {
                    if agents.get(&name).is_some() {
                        return Err(de::Error::custom(format!("duplicate agent `{name}`")));
                    }
                    agents.0.push((name, agent));
                }
                Ok(agents)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::ids::Role;
    use crate::model::loop_file::parse;

    #[test]
    fn the_first_declared_agent_is_the_default() {
        let text = "agents:\n  zed: {backend: anthropic, model: a}\n  abe: {backend: anthropic, model: b}\nroles: {skeptic: abe}\n";
        let file = parse(text, "loop.yaml").unwrap();
        assert_eq!(file.agent_for(Role::Scout).unwrap().0, "zed");
        assert_eq!(file.agent_for(Role::Skeptic).unwrap().0, "abe");
        let again = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(file, again, "the journal keeps the order");
    }
}
