"""Static rules of the family vision-audio."""
