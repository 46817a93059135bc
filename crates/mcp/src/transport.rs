//! `rmcp`'s transport over our lines.
//!
//! `rmcp` polls `receive` beside everything else it does and may drop the future at any await, so all that a line
//! goes through lives in the [`Intake`]. When the connection is over `receive` says so at once; when only the
//! input has ended it says so after the last answer was written, because `rmcp` drops the answers of handlers
//! that run longer than its own five seconds.

use std::sync::Arc;

use gateway::Acts;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

use crate::{
    flights::Flights,
    intake::Intake,
    outbox::{Line, NotWritten, Outbox},
};

/// One connection, as `rmcp` uses it.
pub(crate) struct Lines<A> {
    /// None when nothing is read any more: the socket is then closed as soon as the writer lets go of it.
    intake: Option<Intake<A>>,
    outbox: Outbox,
    flights: Arc<Flights<A>>,
    over: CancellationToken,
}

impl<A: Acts> Lines<A> {
    pub(crate) fn new(
        intake: Intake<A>,
        outbox: Outbox,
        flights: Arc<Flights<A>>,
        over: CancellationToken,
    ) -> Self {
        Self {
            intake: Some(intake),
            outbox,
            flights,
            over,
        }
    }
}

impl<A: Acts> Transport<RoleServer> for Lines<A> {
    type Error = NotWritten;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), NotWritten>> + Send + 'static {
        let outbox = self.outbox.clone();
        let flights = Arc::clone(&self.flights);
        async move {
            let id = match &item {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                // This server asks nothing and announces nothing.
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            match id {
                Some(id) if flights.wants_answer(&id) => {
                    outbox.send(Line::answer(&item, Some(id.clone()))).await?;
                    flights.answer_queued(&id);
                    Ok(())
                }
                Some(_) | None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let intake = self.intake.as_mut()?;
        // First, and here: `rmcp` picks among what is ready at random, and what a client sent before it closed
        // must not be begun after that.
        let message = tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            message = intake.next() => message,
        };
        if message.is_none() {
            self.intake = None;
        }
        message
    }

    async fn close(&mut self) -> Result<(), NotWritten> {
        self.intake = None;
        Ok(())
    }
}
