package telemetry

// The names of everything Errand tells about itself. They follow OpenTelemetry's
// semantic conventions where those have a name for the thing, and begin with
// "errand." where they don't. Counters are named by what they count, in the
// plural; durations are histograms in seconds.
const (
	// Attributes of spans and metrics. Ids stand on spans and in logs alone: a
	// metric with one would grow with the tasks.
	AttrTenant       = "errand.tenant"
	AttrAgent        = "errand.agent"
	AttrTaskID       = "errand.task.id"
	AttrContextID    = "errand.context.id"
	AttrMessageID    = "errand.message.id"
	AttrTaskState    = "errand.task.state"
	AttrTaskVersion  = "errand.task.version"
	AttrLeaseEpoch   = "errand.lease.epoch"
	AttrAttempt      = "errand.attempt"
	AttrOutcome      = "errand.outcome"
	AttrReason       = "errand.reason"
	AttrErrorType    = "error.type"
	AttrRedelivered  = "errand.redelivered"
	AttrMessageCount = "messaging.batch.message_count"

	// Spans. {agent} stands for the agent's name.
	SpanHandle = "errand.handle" // one run of a handler
	SpanDirect = "errand.direct" // one direct Message, asking side
	SpanAnswer = "errand.answer" // one direct Message, answering side

	// Metrics of the work queue and the event log.
	MetricWorkPublished  = "errand.work.published"
	MetricWorkDelivered  = "errand.work.delivered"
	MetricWorkPoison     = "errand.work.poison"
	MetricEventPublished = "errand.events.published"
	MetricEventPurged    = "errand.events.purged"

	// Metrics of notifiers.
	MetricWatches      = "errand.watches"
	MetricWatchEvents  = "errand.watch.events"
	MetricWatchLogRead = "errand.watch.log_reads"
	MetricWatchGaps    = "errand.watch.gaps"

	// Metrics of the task store's database; the operation is an attribute.
	MetricStoreDuration = "errand.store.operation.duration"
	MetricStoreBatch    = "errand.store.batch.size"
	AttrOperation       = "errand.operation"

	// Metrics of the outbox and of background work.
	MetricOutboxBacklog       = "errand.outbox.backlog"
	MetricOutboxAge           = "errand.outbox.age"
	MetricEventsUnpartitioned = "errand.events.unpartitioned"
	MetricReaped              = "errand.tasks.reaped" // by AttrReason and AttrOutcome
	MetricQueuesUnserved      = "errand.queues.unserved"

	// Metrics of dead letters, by AttrAgent and AttrReason.
	MetricDeadLetters = "errand.dead_letters"
	MetricRedriven    = "errand.dead_letters.redriven"

	// Metrics of executors.
	MetricTurnDuration      = "errand.turn.duration"
	MetricHandlersAbandoned = "errand.handlers.abandoned"
)

// Keys of log fields. Request-independent things (errors, durations) use plain
// words: "error", "duration".
const (
	LogTenant    = "tenant"
	LogAgent     = "agent"
	LogTaskID    = "task_id"
	LogContextID = "context_id"
	LogMessageID = "message_id"
	LogError     = "error"
	LogTraceID   = "trace_id"
	LogSpanID    = "span_id"
)
