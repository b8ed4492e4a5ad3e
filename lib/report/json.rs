//! Writes the facts of a page as JSON, with the same keys for every profile.

use serde_json::{Map, Value as Json, json};

use super::page::{Block, Item, Number, Page, Row, Table, Value};

/// Returns the page as a JSON object.
pub(super) fn render(page: &Page) -> String {
    let (mut whole, mut left_out) = (Map::new(), Map::new());
    for block in &page.blocks {
        match block {
            Block::Facts(facts) => facts.iter().for_each(|fact| {
                let mut object = Map::new();
                let (key, value) = match &fact.value {
                    Value::Text(text) => ("text", json!(text)),
                    Value::List(items) => ("items", items_to_json(items)),
                    Value::Path(items, _) => ("path", items_to_json(items)),
                };
                object.insert(key.to_owned(), value);
                object.extend(fact.numbers.iter().map(|(name, number)| ((*name).to_owned(), number_to_json(*number))));
                whole.insert(fact.label.trim_end_matches('?').replace(' ', "_"), Json::Object(object));
            }),
            Block::Table(table) => {
                let rows = table.rows.iter().map(|row| row_to_json(table, row)).collect();
                whole.insert(table.key.to_owned(), Json::Array(rows));
                if table.left_out > 0 {
                    left_out.insert(table.key.to_owned(), json!(table.left_out));
                }
            }
            Block::Commands(commands) => {
                whole.insert("commands".to_owned(), json!(commands));
            }
        }
    }
    if !left_out.is_empty() {
        whole.insert("left_out".to_owned(), Json::Object(left_out));
    }
    // Serializing strings and numbers does not fail.
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

/// Returns a number without a fraction as an integer.
fn number_to_json(number: f64) -> Json {
    // All integers up to 2⁵³ are exact.
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

fn items_to_json(items: &[Item]) -> Json {
    items.iter().map(item_to_json).collect()
}

fn item_to_json(item: &Item) -> Json {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(item.name));
    let key = if matches!(item.number, Some(Number::Part(_))) { "percent_of_it" } else { "percent" };
    object.insert(key.to_owned(), json!(item.number.and_then(|number| number.value())));
    if let Some(inner) = &item.inner {
        object.insert("inner".to_owned(), json!(inner));
    }
    if !item.parts.is_empty() {
        object.insert("parts".to_owned(), items_to_json(&item.parts));
    }
    Json::Object(object)
}

fn row_to_json(table: &Table, row: &Row) -> Json {
    let mut object = Map::new();
    object.insert("names".to_owned(), json!(row.names));
    for (column, number) in table.columns.iter().zip(&row.numbers) {
        object.insert(column.key.to_owned(), json!(number.value()));
    }
    if matches!(table.key, "tree" | "callers") {
        object.insert("depth".to_owned(), json!(row.depth));
    }
    object.insert(table.details_key.to_owned(), items_to_json(&row.details));
    if !row.notes.is_empty() {
        let notes = row.notes.iter().map(|note| json!({"label": note.label, "items": items_to_json(&note.items)}));
        object.insert("notes".to_owned(), notes.collect());
    }
    Json::Object(object)
}
