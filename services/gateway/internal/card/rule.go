package card

import (
	"strings"

	"github.com/errandhq/errand/pkg/config"
)

// reasons say in words what a condition means for a sender.
var reasons = map[config.Condition]string{
	config.SideEffect:            "it has side effects",
	config.HumanInput:            "it may ask for input",
	config.SeparateAuthorization: "it may need a separate authorization",
	config.MayOutliveRequest:     "it may take longer than a request",
	config.ManagedArtifacts:      "it keeps artifacts",
	config.CancelOrRecovery:      "it can be canceled and recovers",
	config.Retention:             "its results are retained",
}

// rule says when a skill answers with a task, and when with a Message.
func rule(agent *config.Agent, skill string) string {
	switch agent.Lifecycle {
	case config.LifecycleMessage:
		return "Answers with a Message."
	case config.LifecycleHybrid:
		return hybridRule(agent.TaskWhen(skill))
	default:
		return "Answers with a Task."
	}
}

func hybridRule(conditions []config.Condition, known bool) string {
	switch {
	case !known:
		return "Answers with a Task."
	case len(conditions) == 0:
		return "Answers with a Message or a Task."
	}
	var because []string
	for _, c := range conditions {
		because = append(because, reasons[c])
	}
	return "Answers with a Task: " + strings.Join(because, ", ") + "."
}
