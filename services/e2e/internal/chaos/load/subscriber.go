package load

import (
	"errors"
	"io"
	"strconv"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// quiet is how long a stream may say nothing before its reader connects anew.
const quiet = 45 * time.Second

// Of slow readers: their share, and for how long at most they don't read.
const (
	slow        = 0.1
	inattention = 3 * time.Second
)

// subscriber follows a task to its end over as many connections as it takes, some
// of which it cuts itself.
type subscriber struct {
	*sender

	// m is the message that opens the stream; nil for one who only subscribes.
	m    *message
	view journal.Stream
	// last is the version of the last event, if it came with one.
	last     int64
	failures int
	over     bool
}

func (s *sender) subscriber(m *message, taskID string) *subscriber {
	return &subscriber{sender: s, m: m, view: journal.Stream{TaskID: taskID}}
}

func (s *subscriber) follow() {
	defer func() {
		if s.view.TaskID != "" {
			s.journal.AddStream(&s.view)
		}
	}()
	for !s.over {
		asked := s.connect()
		if !s.over && !s.again(s.failures, asked) {
			return
		}
	}
}

// connect reads one connection to its end. It returns the delay that a refusal
// asks for.
func (s *subscriber) connect() time.Duration {
	way := s.way()
	op, in, resumed := s.opening(way.Name())
	c := journal.Connection{Opened: time.Now(), Binding: way.Name(), Resumed: resumed, OfTurn: op == binding.SendStreamingMessage}
	header := binding.With("Last-Event-ID")
	if resumed > 0 {
		header = binding.With("Last-Event-ID", strconv.FormatInt(resumed, 10))
	}
	stream, refusal, err := way.Open(s.ctx, op, in, header)
	var asked time.Duration
	switch {
	case err != nil:
		c.Error, c.Retryable = short(err), true
	case stream == nil:
		asked = s.refused(&c, refusal.Err)
	default:
		s.drain(&c, stream)
	}
	c.Closed = time.Now()
	s.note(&c, err != nil)
	s.view.Connections = append(s.view.Connections, c)
	s.failures++
	if len(c.Events) > 0 {
		s.failures = 0
	}
	return asked
}

// opening is how the next connection is opened: by the message until the task is
// known, and sometimes later, too.
func (s *subscriber) opening(way string) (op binding.Op, in proto.Message, resumed int64) {
	if way != "grpc" {
		resumed = s.last
	}
	if s.view.TaskID == "" || s.m != nil && s.chance(0.2) {
		return binding.SendStreamingMessage, s.m.in, resumed
	}
	return binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: s.view.TaskID}, resumed
}

// refused: who can't subscribe since the task is over reads it.
func (s *subscriber) refused(c *journal.Connection, e *binding.Error) time.Duration {
	c.Error, c.Retryable = reason(e), retryable(e)
	s.over = !c.Retryable
	if c.Error == "UNSUPPORTED_OPERATION" && s.view.TaskID != "" {
		s.read(s.view.TaskID)
	}
	return e.Retry().GetRetryDelay().AsDuration()
}

// drain reads until the stream ends, or cuts it at some event.
func (s *subscriber) drain(c *journal.Connection, stream *binding.Stream) {
	defer stream.Close()
	cut := -1
	if s.chance(0.4) {
		cut = s.dice.IntN(6)
	}
	patience := time.AfterFunc(quiet, stream.Close)
	defer patience.Stop()
	halt := -1
	if s.chance(slow) {
		halt = s.dice.IntN(4)
	}
	for len(c.Events) != cut {
		if len(c.Events) == halt {
			s.pause(s.upTo(inattention))
		}
		e, err := stream.Next()
		if err != nil {
			s.ended(c, err)
			return
		}
		patience.Reset(quiet)
		s.seen(c, e)
	}
}

func (*subscriber) ended(c *journal.Connection, err error) {
	var refusal *binding.Error
	switch {
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		c.Ended = true
	case errors.As(err, &refusal):
		c.Error, c.Retryable = reason(refusal), retryable(refusal)
	default:
		c.Error, c.Retryable = short(err), true
	}
}

func (s *subscriber) seen(c *journal.Connection, e binding.Event) {
	version, _ := strconv.ParseInt(e.ID, 10, 64) // none on gRPC
	snapshot := withoutHistory(e.GetTask())
	c.Events = append(c.Events, journal.Seen{
		At: time.Now(), Version: version, Resync: e.Name == "resync", Event: e.StreamResponse,
	})
	s.last = version
	if snapshot != nil {
		s.view.TaskID = snapshot.GetId()
	}
	state := snapshot.GetStatus().GetState()
	if update := e.GetStatusUpdate(); update != nil {
		state = update.GetStatus().GetState()
	}
	s.over = s.over || task.Terminal(state)
}

// note writes down what the connection was as an attempt of the message.
func (s *subscriber) note(c *journal.Connection, broken bool) {
	if !c.OfTurn {
		return
	}
	a := journal.Attempt{Begun: c.Opened, Ended: c.Closed, Binding: c.Binding}
	if len(c.Events) > 0 {
		a.Ended, a.Task = c.Events[0].At, c.Events[0].Event.GetTask()
		a.Lost = a.Task == nil
	} else {
		a.Lost, a.Error, a.Retryable = broken || c.Error == "", c.Error, c.Retryable
	}
	s.m.note(a)
}
