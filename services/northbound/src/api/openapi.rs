//! The description of the interface in OpenAPI 3.1, for code generators.
//!
//! ```text
//!   ROUTES, schemas.json ──document──> docs/reference/openapi.json, /api/v1/openapi.json
//! ```
//!
//! In: the table of resources, and the schemas of the objects. Out: JSON. A test proves that the file in the repository is this, and another
//! one that the objects of the view have the members of their schemas.

use super::context::{Answered, Context, PAGE, Route, Takes};
use super::filters;
use super::parameters::parameter_schema;
use crate::http::{Method, Response};
use serde_json::{Map, Value, json};

/// The schemas of objects and of pages.
const SCHEMAS: &str = include_str!("schemas.json");

/// `/api/v1/openapi.json`
pub fn answer(context: &Context<'_>) -> Answered {
    let tag = format!("\"{}\"", env!("CARGO_PKG_VERSION"));
    context.ready(Response::value(&document(context.routes)).tagged(tag))
}

/// The description.
pub fn document(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes.iter().filter(|route| route.path.starts_with("/api/v1") || route.path == "/metrics") {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            methods.insert(route.method.name().to_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Burnet",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The REST interface of a Burnet node. docs/reference/rest.md explains it.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8181" }],
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": serde_json::from_str::<Value>(SCHEMAS).unwrap_or_default(),
            "responses": { "Problem": {
                "description": "An error",
                "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let name = route.path.trim_start_matches("/api/v1").replace(['/', '.', '{', '}'], "_");
    let content = match (route.path, route.schema) {
        ("/metrics", _) => json!({ "text/plain": {} }),
        (path, _) if path.ends_with("/stream") => json!({ "text/event-stream": {} }),
        (_, "") => json!({ "application/json": {} }),
        (_, schema) => {
            json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
        }
    };
    let success = match route.path {
        path if path.ends_with("/ws") => {
            json!({ "101": { "description": "The connection becomes a WebSocket" } })
        }
        _ if success(route) == "204" => json!({ "204": { "description": "Success" } }),
        _ => json!({ success(route): { "description": "Success", "content": content } }),
    };
    let mut responses = success.as_object().cloned().unwrap_or_default();
    if !route.schema.is_empty() && route.has_tag {
        responses.insert("304".to_owned(), json!({ "description": "If-None-Match names the present state" }));
    }
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
    let mut operation = json!({
        "operationId": format!("{}{}", route.method.name().to_lowercase(), name.trim_end_matches('_')),
        "summary": route.about,
        "x-role": route.needs.to_string(),
        "parameters": parameters(route),
        "responses": responses,
    });
    if let (false, Some(members)) = (route.body.is_empty(), operation.as_object_mut()) {
        let schema = json!({ "$ref": format!("#/components/schemas/{}", route.body) });
        let body = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        members.insert("requestBody".to_owned(), body);
    }
    operation
}

/// The status of success.
fn success(route: &Route) -> &'static str {
    match (route.method, route.schema) {
        // The app's state changes later.
        (Method::Post, "") if route.body == "AppCommand" => "202",
        (_, "") if route.method != Method::Get => "204",
        // It only has a body because a query would be too long.
        (Method::Post, "RoutesOfPairs") => "200",
        (Method::Post, _) => "201",
        // Each file has a new version.
        (Method::Put, "NetworkFile") => "201",
        (Method::Delete, _) => "202",
        _ => "200",
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let parameter = |name: &str, place: &str| {
        let required = place == "path" || route.path == "/api/v1/routes" && matches!(name, "from" | "to");
        json!({ "name": name, "in": place, "required": required, "schema": parameter_schema(route.path, name) })
    };
    let id = route.path.contains("{id}").then(|| parameter("id", "path"));
    let names: Vec<&str> = match route.takes {
        Takes::Only(names) => names.to_vec(),
        Takes::PageWith(names) => PAGE.iter().chain(names).copied().collect(),
        Takes::Page(kind) => PAGE.iter().chain(filters::names(kind)).copied().collect(),
    };
    id.into_iter().chain(names.into_iter().map(|name| parameter(name, "query"))).collect()
}
