package natsconn

import (
	"context"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

var propagator = propagation.TraceContext{}

// InjectTrace writes the trace context of ctx (W3C Trace Context) into a message.
func InjectTrace(ctx context.Context, msg *nats.Msg) {
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	propagator.Inject(ctx, carrier(msg.Header))
}

// ExtractTrace returns ctx with the trace context that a message carries; without
// one, ctx itself.
func ExtractTrace(ctx context.Context, header nats.Header) context.Context {
	return propagator.Extract(ctx, carrier(header))
}

// TraceContext returns ctx with the trace context of a traceparent as it is kept
// in rows; an empty or malformed one leaves ctx as it is.
func TraceContext(ctx context.Context, traceparent string) context.Context {
	return propagator.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// carrier keeps the keys in lower case, as every other writer of W3C trace
// context on NATS does; nats.Header tells upper from lower case.
type carrier nats.Header

func (c carrier) Get(key string) string {
	return nats.Header(c).Get(key)
}

func (c carrier) Set(key, value string) {
	nats.Header(c).Set(key, value)
}

func (c carrier) Keys() []string {
	return slices.Collect(maps.Keys(c))
}
