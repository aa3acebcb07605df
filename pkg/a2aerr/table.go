package a2aerr

import (
	"net/http"

	"google.golang.org/grpc/codes"
)

// Domain is the domain of every ErrorInfo.
const Domain = "a2a-protocol.org"

// Reasons, as they stand in ErrorInfo.reason.
const (
	ReasonTaskNotFound                   = "TASK_NOT_FOUND"
	ReasonTaskNotCancelable              = "TASK_NOT_CANCELABLE"
	ReasonPushNotificationNotSupported   = "PUSH_NOTIFICATION_NOT_SUPPORTED"
	ReasonUnsupportedOperation           = "UNSUPPORTED_OPERATION"
	ReasonContentTypeNotSupported        = "CONTENT_TYPE_NOT_SUPPORTED"
	ReasonInvalidAgentResponse           = "INVALID_AGENT_RESPONSE"
	ReasonExtendedAgentCardNotConfigured = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
	ReasonExtensionSupportRequired       = "EXTENSION_SUPPORT_REQUIRED"
	ReasonVersionNotSupported            = "VERSION_NOT_SUPPORTED"

	ReasonParseError       = "PARSE_ERROR"
	ReasonInvalidRequest   = "INVALID_REQUEST"
	ReasonMethodNotFound   = "METHOD_NOT_FOUND"
	ReasonInvalidParams    = "INVALID_PARAMS"
	ReasonTooLarge         = "TOO_LARGE"
	ReasonUnauthenticated  = "UNAUTHENTICATED"
	ReasonUnauthorized     = "UNAUTHORIZED"
	ReasonUnavailable      = "UNAVAILABLE"
	ReasonExhausted        = "RESOURCE_EXHAUSTED"
	ReasonCanceled         = "CANCELED"
	ReasonDeadlineExceeded = "DEADLINE_EXCEEDED"
	ReasonInternalError    = "INTERNAL_ERROR"
)

// kind is one row of the table.
type kind struct {
	code    codes.Code
	http    int
	jsonrpc int
}

// statusClientClosedRequest is what proxies log for a request whose client
// went away; nobody is left to read it.
const statusClientClosedRequest = 499

// The first nine rows are A2A §5.4; the JSON-RPC codes of authentication and of
// calls that ended early are those of the official Go SDK, since A2A names none.
// What is worth a retry is an internal error there, which says so by its RetryInfo.
var table = map[string]kind{
	ReasonTaskNotFound:                   {codes.NotFound, http.StatusNotFound, -32001},
	ReasonTaskNotCancelable:              {codes.FailedPrecondition, http.StatusBadRequest, -32002},
	ReasonPushNotificationNotSupported:   {codes.FailedPrecondition, http.StatusBadRequest, -32003},
	ReasonUnsupportedOperation:           {codes.FailedPrecondition, http.StatusBadRequest, -32004},
	ReasonContentTypeNotSupported:        {codes.InvalidArgument, http.StatusBadRequest, -32005},
	ReasonInvalidAgentResponse:           {codes.Internal, http.StatusInternalServerError, -32006},
	ReasonExtendedAgentCardNotConfigured: {codes.FailedPrecondition, http.StatusBadRequest, -32007},
	ReasonExtensionSupportRequired:       {codes.FailedPrecondition, http.StatusBadRequest, -32008},
	ReasonVersionNotSupported:            {codes.FailedPrecondition, http.StatusBadRequest, -32009},

	ReasonParseError:       {codes.InvalidArgument, http.StatusBadRequest, -32700},
	ReasonInvalidRequest:   {codes.InvalidArgument, http.StatusBadRequest, -32600},
	ReasonMethodNotFound:   {codes.Unimplemented, http.StatusNotFound, -32601},
	ReasonInvalidParams:    {codes.InvalidArgument, http.StatusBadRequest, -32602},
	ReasonTooLarge:         {codes.ResourceExhausted, http.StatusRequestEntityTooLarge, -32602},
	ReasonUnauthenticated:  {codes.Unauthenticated, http.StatusUnauthorized, -31401},
	ReasonUnauthorized:     {codes.PermissionDenied, http.StatusForbidden, -31403},
	ReasonUnavailable:      {codes.Unavailable, http.StatusServiceUnavailable, -32603},
	ReasonExhausted:        {codes.ResourceExhausted, http.StatusTooManyRequests, -32603},
	ReasonCanceled:         {codes.Canceled, statusClientClosedRequest, -32000},
	ReasonDeadlineExceeded: {codes.DeadlineExceeded, http.StatusGatewayTimeout, -32000},
	ReasonInternalError:    {codes.Internal, http.StatusInternalServerError, -32603},
}

// codeNames are the names of gRPC codes as google.rpc.Code spells them, for
// error.status of HTTP bodies.
var codeNames = map[codes.Code]string{
	codes.Canceled:           "CANCELLED",
	codes.DeadlineExceeded:   "DEADLINE_EXCEEDED",
	codes.FailedPrecondition: "FAILED_PRECONDITION",
	codes.Internal:           "INTERNAL",
	codes.InvalidArgument:    "INVALID_ARGUMENT",
	codes.NotFound:           "NOT_FOUND",
	codes.PermissionDenied:   "PERMISSION_DENIED",
	codes.ResourceExhausted:  "RESOURCE_EXHAUSTED",
	codes.Unauthenticated:    "UNAUTHENTICATED",
	codes.Unavailable:        "UNAVAILABLE",
	codes.Unimplemented:      "UNIMPLEMENTED",
}
