package embedded

import (
	"context"
	"fmt"
	"log/slog"
)

// slogLogger hands the server's log to slog. What the server calls a notice is
// detail for whoever runs it inside another program.
type slogLogger struct{ logger *slog.Logger }

func (l *slogLogger) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }
func (l *slogLogger) Warnf(format string, v ...any)   { l.log(slog.LevelWarn, format, v) }
func (l *slogLogger) Errorf(format string, v ...any)  { l.log(slog.LevelError, format, v) }

// Fatalf is what the server calls when it can't go on; it shuts down by itself.
func (l *slogLogger) Fatalf(format string, v ...any) { l.log(slog.LevelError, format, v) }
func (l *slogLogger) Debugf(format string, v ...any) { l.log(slog.LevelDebug, format, v) }
func (l *slogLogger) Tracef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }

func (l *slogLogger) log(level slog.Level, format string, v []any) {
	l.logger.Log(context.Background(), level, "NATS server", "text", fmt.Sprintf(format, v...))
}
