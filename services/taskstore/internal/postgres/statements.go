package postgres

// The statements of sql/transaction.sql.
var (
	sqlBeginUpdate   = named("begin_update")
	sqlBeginSnapshot = named("begin_snapshot")
	sqlCommit        = named("commit")
	sqlRollback      = named("rollback")
	sqlGuard         = named("guard")
	sqlSteadyPlan    = named("steady_plan")
	sqlSteadyPage    = named("steady_page")
)

// The statements of sql/load.sql.
var (
	sqlReserveDedupe = named("reserve_dedupe")
	sqlLoadDedupe    = named("load_dedupe")
	sqlLockTasks     = named("lock_tasks")
	sqlLockLeases    = named("lock_leases")
	sqlLoadArtifacts = named("load_artifacts")
	sqlLockContexts  = named("lock_contexts")
)

// The statements of sql/write.sql.
var (
	sqlInsertTasks     = named("insert_tasks")
	sqlUpdateTasks     = named("update_tasks")
	sqlInsertMessages  = named("insert_messages")
	sqlDeleteArtifacts = named("delete_artifacts")
	sqlInsertChunks    = named("insert_chunks")
	sqlInsertEvents    = named("insert_events")
	sqlUpdateDedupe    = named("update_dedupe")
	sqlDeleteDedupe    = named("delete_dedupe")
	sqlPutLeases       = named("put_leases")
	sqlDeleteLeases    = named("delete_leases")
	sqlInsertDirects   = named("insert_directs")
	sqlTouchContexts   = named("touch_contexts")
	sqlPutContexts     = named("put_contexts")
)

// The statements of sql/read.sql that are complete; see page.go for the others.
var (
	sqlReadHeads          = named("read_heads")
	sqlReadHead           = named("read_head")
	sqlReadEvents         = named("read_events")
	sqlReadUserMessages   = named("read_user_messages")
	sqlReadDedupe         = named("read_dedupe")
	sqlReadDirect         = named("read_direct")
	sqlReadContext        = named("read_context")
	sqlReadContextTasks   = named("read_context_tasks")
	sqlReadContextDirects = named("read_context_directs")
)

// The statements of sql/keep.sql.
var (
	sqlLapsedLeases    = named("lapsed_leases")
	sqlDueTasks        = named("due_tasks")
	sqlQueues          = named("queues")
	sqlOldestQueued    = named("oldest_queued")
	sqlUnsettledAgents = named("unsettled_agents")
	sqlParkedTasks     = named("parked_tasks")
	sqlOverrunTasks    = named("overrun_tasks")
	sqlRenewLeases     = named("renew_leases")
	sqlHoldRole        = named("hold_role")
	sqlDropRole        = named("drop_role")
)

// The statements of sql/deadletters.sql.
var (
	sqlInsertDeadLetters  = named("insert_dead_letters")
	sqlLockDeadLetters    = named("lock_dead_letters")
	sqlRedriveDeadLetters = named("redrive_dead_letters")
	sqlReadDeadLetter     = named("read_dead_letter")
	sqlListDeadLetters    = named("list_dead_letters")
	sqlPurgeDeadLetters   = named("purge_dead_letters")
)

// The statements of sql/purge.sql that name no partition; see partition.go for
// the others.
var (
	sqlPurgeDedupe        = named("purge_dedupe")
	sqlPurgeDirects       = named("purge_directs")
	sqlPurgeContexts      = named("purge_contexts")
	sqlPurgeDefaultEvents = named("purge_default_events")
	sqlCountDefaultEvents = named("count_default_events")
	sqlEventPartitions    = named("event_partitions")
	sqlLimitWaiting       = named("limit_waiting")
)

// The statements of sql/outbox.sql.
var (
	sqlBeatPublisher    = named("beat_publisher")
	sqlAdvancePublisher = named("advance_publisher")
	sqlStalePublishers  = named("stale_publishers")
	sqlReadOutbox       = named("read_outbox")
	sqlDropPublisher    = named("drop_publisher")
	sqlOutboxLag        = named("outbox_lag")
	sqlNow              = named("now")
	sqlSchemaVersion    = named("schema_version")
)
