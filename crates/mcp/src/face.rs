//! What the agent's requests are answered with, in either era.

use std::sync::Arc;

use gateway::{Acts, Asker, HttpRequest};
use model::{Denial, Foreign};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
        DiscoverResult, ErrorCode, Implementation, InitializeRequestParams, InitializeResult,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use crate::{arguments, flights::Flights, result, tools};

/// The server as `rmcp` knows it.
#[derive(Debug)]
pub(crate) struct Face<A> {
    acts: Arc<A>,
    who: Asker,
    flights: Arc<Flights<A>>,
}

impl<A: Acts> Face<A> {
    pub(crate) fn new(acts: Arc<A>, who: Asker, flights: Arc<Flights<A>>) -> Self {
        Self { acts, who, flights }
    }

    /// Asks the gateway and waits for the call's end, in a task of its own: a defect there is an error here
    /// and no request without an answer.
    async fn act(
        &self,
        request: HttpRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let (acts, who) = (Arc::clone(&self.acts), self.who);
        let call = tokio::spawn(async move { acts.http(who, request).await });
        let ending = call.await.map_err(|_| {
            let text = "the call broke off inside Lychgate; do not repeat it, ask the operator: lych reconcile";
            ErrorData::internal_error(text, None)
        })?;
        self.flights
            .call_ended(&context.id, result::call_of(&ending));
        Ok(result::of_ending(ending))
    }
}

impl<A: Acts> ServerHandler for Face<A> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("lychgate", wire::VERSION).with_title("Lychgate");
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&request)?;
        // Later requests are shaped by the version that was agreed on, not by the one that was asked for.
        request.protocol_version = answer.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        Ok(DiscoverResult::from_server_info(
            versions,
            ServerHandler::get_info(self),
        ))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        // Wrong arguments are a result, so that the model reads what to mend; only an unknown name is an error.
        let result = match request.name.as_ref() {
            name @ tools::CHANNELS => match arguments::none(&given) {
                Ok(()) => result::of_channels(&self.acts.channels(self.who)),
                Err(what) => result::malformed(name, &what),
            },
            name @ tools::HTTP_REQUEST => match arguments::http_request(given) {
                Ok(request) => self.act(request, &context).await?,
                Err(what) => {
                    self.acts
                        .turned_away(self.who, Denial::Malformed { what: what.clone() });
                    result::malformed(name, &what)
                }
            },
            unknown => {
                let text = format!("unknown tool: {}", Foreign::from(unknown));
                return Err(ErrorData::invalid_params(text, None));
            }
        };
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        // A known method comes here when its parameters do not have its form.
        if METHODS.contains(&method.as_str()) {
            let text = format!("the parameters of {method} do not have its form");
            return Err(ErrorData::invalid_params(text, None));
        }
        let text = format!("unknown method: {}", Foreign::from(method.as_str()));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
    }
}

/// The methods that this server has.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/call",
    "tools/list",
];
